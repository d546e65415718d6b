import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { vmstat } from './vmstat.ts'

test('fields that the pattern matches are shown', async () => {
  const { lines } = await readWith(vmstat)
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_vmstat_oom_kill 3',
      'node_vmstat_pgfault 2.320168809e+09',
      'node_vmstat_pgmajfault 507162',
      'node_vmstat_pgpgin 7.344136e+06',
      'node_vmstat_pgpgout 1.541180478e+09',
      'node_vmstat_pswpin 1476',
      'node_vmstat_pswpout 35045',
    ],
  )
})

test('another pattern shows others', async () => {
  const { lines } = await readWith(vmstat, { fields: '^thp_' })
  assert.deepEqual(lines, [
    '# TYPE node_vmstat_thp_fault_alloc untyped',
    'node_vmstat_thp_fault_alloc 142261',
  ])
})

test('a pattern that nothing matches shows nothing', async () => {
  assert.deepEqual(await readWith(vmstat, { fields: '^nothing$' }), {
    lines: [],
    outcome: 'success',
    reason: '',
  })
})

test('junk is no success', t => survivesJunk(t, vmstat, ['proc/vmstat']))
