// What makes a fault in C harder to use is in all native code that is shipped: read from what was built.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '..')
const built = (name: string) => join(root, 'dist', name)
const readelf = (...args: string[]) => execFileSync('readelf', ['-W', ...args], { encoding: 'utf8' })

for (const name of ['svc.node', 'svc-probe', 'svc-decode'])
  test(`${name} has no memory that is written and run, and lies at an address of chance`, () => {
    const segments = readelf('-l', built(name))
    assert.match(segments, /^Elf file type is DYN/m)
    assert.match(segments, /^ +GNU_RELRO /m)
    assert.match(segments, /^ +GNU_STACK .* RW +0x/m)
    assert.doesNotMatch(segments, / RWE /)
    // All of its table of functions is filled in, and read-only, before it runs.
    assert.match(readelf('-d', built(name)), /FLAGS_1\).* NOW/)
    if (name !== 'svc.node') assert.match(readelf('-d', built(name)), /FLAGS_1\).* PIE/)
  })

test('the addon checks its stack and its copies', () => {
  const symbols = readelf('--dyn-syms', built('svc.node'))
  assert.match(symbols, / __stack_chk_fail@/)
  assert.match(symbols, / __(vasprintf|vsnprintf|snprintf|memcpy|memset)_chk@/)
  if (process.arch !== 'x64') return
  // Where it is called from outside stands endbr64 (control-flow enforcement).
  const entry = execFileSync('objdump', ['-d', '--disassemble=napi_register_module_v1', built('svc.node')])
  assert.match(entry.toString(), /<napi_register_module_v1>:\n.*\bendbr64\b/)
})

test('every compiler that makes what is shipped has the options, also for the other processor', () => {
  const options = readFileSync(join(root, 'native/hardened.opt'), 'utf8').split(/\s+/)
  for (const option of ['-fstack-clash-protection', '-fstack-protector-strong', '-D_FORTIFY_SOURCE=3'])
    assert.ok(options.includes(option), option)
  const calls = readFileSync(join(root, 'tools/setup'), 'utf8').match(/^ +gcc .*$/gm) ?? []
  assert.equal(calls.length, 3)
  for (const call of calls) assert.match(call, /^ +gcc "\$\{hardened\[@\]\}" /)
  for (const file of ['arm64.ts', 'image-launcher.ts'])
    assert.match(readFileSync(join(root, 'tools/package', file), 'utf8'), /hardened\.opt/)
})
