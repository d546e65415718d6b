import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { sysctl } from './sysctl.ts'

test('numbers are shown alone, by place, or by key', async () => {
  const include = ['kernel.pid_max', 'kernel.printk', 'kernel.printk:now,default,least,boot']
  const { lines, outcome } = await readWith(sysctl, { include })
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_sysctl_kernel_pid_max 4.194304e+06',
      'node_sysctl_kernel_printk{index="0"} 4',
      'node_sysctl_kernel_printk{index="1"} 4',
      'node_sysctl_kernel_printk{index="2"} 1',
      'node_sysctl_kernel_printk{index="3"} 7',
      'node_sysctl_kernel_printk_boot 7',
      'node_sysctl_kernel_printk_default 4',
      'node_sysctl_kernel_printk_least 1',
      'node_sysctl_kernel_printk_now 4',
    ],
  )
  assert.ok(lines.includes('# TYPE node_sysctl_kernel_pid_max untyped'))
})

test('words are labels', async () => {
  const { lines } = await readWith(sysctl, { include_info: ['kernel.seccomp.actions_avail'] })
  assert.deepEqual(lines, [
    '# TYPE node_sysctl_info gauge',
    'node_sysctl_info{index="0",name="kernel.seccomp.actions_avail",value="kill_process"} 1',
    'node_sysctl_info{index="1",name="kernel.seccomp.actions_avail",value="errno"} 1',
    'node_sysctl_info{index="2",name="kernel.seccomp.actions_avail",value="log"} 1',
  ])
})

test('nothing is shown where nothing is asked for', async () => {
  assert.deepEqual(await readWith(sysctl), { lines: [], outcome: 'success', reason: '' })
})

test('keys that do not fit, text and absent parameters are faults', async () => {
  const check = async (include: string, reason: RegExp) => {
    const result = await readWith(sysctl, { include: [include] })
    assert.equal(result.outcome, 'failed', include)
    assert.match(result.reason, reason)
  }
  await check('kernel.pid_max:a', /1 numbers for 1 keys/)
  await check('kernel.printk:a,b', /4 numbers for 2 keys/)
  await check('kernel.seccomp.actions_avail', /some values are not numbers/)
  await check('kernel.nothing', /nothing/)
  await assert.rejects(
    readWith(sysctl, { include_info: ['kernel.printk:a,b,c,d'] }),
    /use kernel.printk alone/,
  )
})

test('junk is no success', t =>
  survivesJunk(t, sysctl, ['proc/sys/kernel/printk'], { include: ['kernel.printk'] }))
