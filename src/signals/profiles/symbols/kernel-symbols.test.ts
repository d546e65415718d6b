import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { soak } from '../../../../test/helpers/soak.ts'
import { KernelSymbols } from './kernel-symbols.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-kallsyms-'))
after(() => rmSync(scratch, { recursive: true }))

function of(kallsyms: string, modules = ''): KernelSymbols {
  const paths = { kallsyms: join(scratch, 'kallsyms'), modules: join(scratch, 'modules') }
  writeFileSync(paths.kallsyms, kallsyms)
  writeFileSync(paths.modules, modules)
  return new KernelSymbols(paths)
}

const text = readFileSync('/proc/kallsyms', 'latin1')
const withoutKernelAddresses: string | false = /^0*[1-9a-f]/m.test(text)
  ? false
  : 'addresses of the kernel are hidden here'

test('functions of this kernel are named as kallsyms has them', { skip: withoutKernelAddresses }, () => {
  const names = new Map<number, string[]>()
  for (const [, address = '', name = ''] of text.matchAll(/^([0-9a-f]+) [tTwW] (\S+)/gm)) {
    const low = Number.parseInt(address.slice(-12), 16)
    const list = names.get(low)
    if (list) list.push(name)
    else names.set(low, [name])
  }
  const kernel = new KernelSymbols()
  const stride = soak ? 1 : 50
  const starts = [...names.keys()].sort((a, b) => a - b)
  let checked = 0
  for (let i = 0; i < starts.length; i += stride) {
    const start = starts[i] as number
    const end = (starts[i + 1] ?? start + 1) - 1
    if (names.get(start)?.includes('_etext') || end - start > 65_536) continue
    for (const address of [start, end]) {
      const found = kernel.find(address)
      assert.ok(typeof found === 'object' && names.get(start)?.includes(found.name), start.toString(16))
    }
    checked++
  }
  assert.ok(checked > 1000)
  assert.ok(kernel.bytes < 50 * starts.length)
  assert.equal(kernel.find(4096), '[kernel: no function here]')
  kernel.close()
  assert.equal(kernel.bytes, 0)
})

test('functions of modules and of BPF programs are told with their module, and end with it', () => {
  const kernel = of(
    [
      '0000000000000000 A fixed_percpu_data',
      'ffffffff81000000 t one_alias',
      'ffffffff81000000 T one',
      'ffffffff81000100 t two',
      'ffffffff81000150 d not_code',
      'ffffffff81000180 W weak',
      'ffffffff81000200 T _etext',
      'ffffffffc0201000 t other\t[second]',
      'ffffffffc0101000 t enter\t[first]',
      'ffffffffc0301000 t bpf_prog_6deef7357e7b4530_x\t[bpf]',
      '',
    ].join('\n'),
    'first 4096 0 - Live 0xffffffffc0101000\nsecond 8192 1 first, Live 0xffffffffc0200000 (O)\n',
  )
  const check = (address: number, name: string, module = '') =>
    assert.deepEqual(kernel.find(address), { name, module })
  const none = (address: number) => assert.equal(kernel.find(address), '[kernel: no function here]')
  check(0xffff81000000, 'one')
  check(0xffff810000ff, 'one')
  check(0xffff81000160, 'two')
  check(0xffff810001ff, 'weak')
  none(0xffff81000200)
  none(0xffff80ffffff)
  check(0xffffc0101fff, 'enter', 'first')
  none(0xffffc0102000)
  check(0xffffc0201fff, 'other', 'second')
  none(0xffffc0202000)
  check(0xffffc0301010, 'bpf_prog_6deef7357e7b4530_x', 'bpf')
  none(0xffffc0500000)
  kernel.close()
})

test('a kernel that hides its addresses, or tells nothing, says so', () => {
  const check = (kallsyms: string, want: string) => {
    const kernel = of(kallsyms)
    assert.equal(kernel.find(0xffff81000000), want)
    kernel.close()
  }
  check('0000000000000000 T _text\n0000000000000000 t x\n', '[kernel: addresses are hidden by kptr_restrict]')
  check('', '[kernel: no symbols]')
  check(`${'f'.repeat(200_000)}\nzz\n\n t\nffffffff81000000 T\n`, '[kernel: no symbols]')
  const absent = new KernelSymbols({ kallsyms: '/nowhere' })
  assert.equal(absent.find(1), '[kernel: cannot read /nowhere: ENOENT]')
  absent.close()
})

test('symbols are read again for what none covers, and more seldom where that is in vain', () => {
  let nowMs = 0
  const paths = { kallsyms: join(scratch, 'again'), modules: join(scratch, 'modules') }
  const line = (address: string, name: string) => `${address} t ${name}\t[bpf]\n`
  let text = line('ffffffffc0301000', 'a')
  writeFileSync(paths.kallsyms, text)
  const kernel = new KernelSymbols({ ...paths, nowMs: () => nowMs })
  const knows = (address: number) => typeof kernel.find(address) === 'object'
  assert.ok(!knows(0xffffd0000000))
  text += line('ffffffffd0000000', 'b')
  writeFileSync(paths.kallsyms, text)
  assert.ok(!knows(0xffffd0000000))
  nowMs = 61_000
  assert.ok(knows(0xffffd0000000))
  nowMs = 122_000
  assert.ok(!knows(0xffffe0000000)) // it was read in vain
  writeFileSync(paths.kallsyms, text + line('ffffffffe0000000', 'c'))
  nowMs = 183_000
  assert.ok(!knows(0xffffe0000000))
  nowMs = 243_000
  assert.ok(knows(0xffffe0000000))
  kernel.close()
})
