import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import { soak } from '../../../test/helpers/soak.ts'
import { functionName } from './function-name.ts'

/** What binutils, which has the same library, makes of names. */
function filtered(names: readonly string[]): string[] {
  const input = `${names.join('\n')}\n`
  return execFileSync('c++filt', ['-i'], { input, maxBuffer: 1 << 30, encoding: 'utf8' }).split('\n')
}

test('names of C++ are written as binutils writes them', () => {
  const listed = execFileSync('nm', [process.execPath], { maxBuffer: 1 << 30, encoding: 'utf8' })
  const mangled = [...new Set(listed.match(/(?<= )_Z[^\s@]+/g))]
  const stride = soak ? 1 : Math.max(1, Math.floor(mangled.length / 1000))
  const names = mangled.filter((_, index) => index % stride === 0)
  assert.ok(names.length >= 1000)
  const want = filtered(names)
  names.forEach((symbol, index) => {
    const found = functionName(symbol, true)
    // Longer ones stay as they are.
    if ((want[index] as string).length <= 4096) assert.equal(found.name, want[index])
    assert.deepEqual([found.systemName, found.type], [symbol, 'native'])
  })
})

test('a symbol has its version taken off, and without demangling stays as it is', () => {
  const check = (symbol: string, demangle: boolean, want: [string, string, string]) => {
    const { name, systemName, type } = functionName(symbol, demangle)
    assert.deepEqual([name, systemName, type], want)
  }
  check('memcpy@@GLIBC_2.14', true, ['memcpy', 'memcpy', 'native'])
  check('pthread_create@GLIBC_2.2.5', true, ['pthread_create', 'pthread_create', 'native'])
  check('_ZN3foo3barEv', false, ['_ZN3foo3barEv', '_ZN3foo3barEv', 'native'])
  check('_ZN3foo3barEi', true, ['foo::bar(int)', '_ZN3foo3barEi', 'native'])
  check('_ZN3foo3barEi.part.0', true, ['foo::bar(int) [clone .part.0]', '_ZN3foo3barEi.part.0', 'native'])
  check('_RNvC1a1b', true, ['a::b', '_RNvC1a1b', 'rust'])
  check('_RNvC1a1b', false, ['_RNvC1a1b', '_RNvC1a1b', 'rust'])
  check('_Zqq', true, ['_Zqq', '_Zqq', 'native'])
  check('', true, ['', '', 'native'])
})

/** A type that holds two of the one before it, and so on: 2^levels parts. */
function doubling(levels: number): string {
  const reference = (index: number) => (index === 0 ? 'S_' : `S${(index - 1).toString(36).toUpperCase()}_`)
  let type = 'Pi'
  for (let i = 0; i < levels; i++) type = `F${type}${reference(i)}${reference(i)}E`
  return type
}

test('names that are made to take long, or to become long, stay as they are', { timeout: 60_000 }, () => {
  const check = (symbol: string) => assert.equal(functionName(symbol, true).name, symbol)
  check(`_Z1f${doubling(60)}`)
  // The library looks for a parameter pack in all of it, and writes nothing meanwhile.
  check(`_Z1fIiEvDp${doubling(60)}`)
  check(`_Z1fIJEEvDp${doubling(60)}`)
  check(`_Z1f${'P'.repeat(4000)}i`)
  check(`_Z1fIX${'ng'.repeat(2000)}Li1EEEvv`)
  check(`_Z1f${'1AI'.repeat(1200)}i${'E'.repeat(490)}`)
  check(`_Z1f${'F'.repeat(2000)}i${'E'.repeat(2000)}`)
  check(`_Z${'1'.repeat(4094)}`)
  check(`_ZN3foo3barEv${'x'.repeat(5000)}`)
  check('_ZN3foo3barEv\0')
})

test('whatever bytes a name of C++ has, there is an answer', { timeout: 120_000 }, () => {
  const tokens =
    'S_ S0_ S1_ St Sa Ss T_ T0_ Dp DpT_ J E I F N X sp fl flpl frpl P 1A v i L sZ Li1E DT Z cv Ul E_ R K M D0 C1 A3_'.split(
      ' ',
    )
  let seed = 1
  const below = (limit: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return (seed >>> 8) % limit
  }
  for (let i = 0; i < (soak ? 500_000 : 20_000); i++) {
    let symbol = '_Z1fI'
    for (let k = below(200); k > 0; k--) symbol += tokens[below(tokens.length)]
    const { name } = functionName(symbol, true)
    assert.ok(name.length > 0 && name.length <= 4096)
  }
})
