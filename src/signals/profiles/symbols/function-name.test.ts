import assert from 'node:assert/strict'
import test from 'node:test'
import { functionName } from './function-name.ts'

test('a symbol has its version taken off, and without demangling stays as it is', () => {
  const check = (symbol: string, demangle: boolean, want: [string, string, string], mangled = false) => {
    const { name, systemName, type, isMangled } = functionName(symbol, demangle)
    assert.deepEqual([name, systemName, type], want)
    assert.equal(isMangled, mangled)
  }
  check('memcpy@@GLIBC_2.14', true, ['memcpy', 'memcpy', 'native'])
  check('pthread_create@GLIBC_2.2.5', true, ['pthread_create', 'pthread_create', 'native'])
  check('_ZN3foo3barEv', false, ['_ZN3foo3barEv', '_ZN3foo3barEv', 'native'])
  check('_ZN3foo3barEi', true, ['_ZN3foo3barEi', '_ZN3foo3barEi', 'native'], true)
  check('_ZN3foo3barEi.part.0', true, ['_ZN3foo3barEi.part.0', '_ZN3foo3barEi.part.0', 'native'], true)
  check('_RNvC1a1b', true, ['a::b', '_RNvC1a1b', 'rust'])
  check('_RNvC1a1b', false, ['_RNvC1a1b', '_RNvC1a1b', 'rust'])
  check('_Zqq', true, ['_Zqq', '_Zqq', 'native'], true)
  check('', true, ['', '', 'native'])
})
