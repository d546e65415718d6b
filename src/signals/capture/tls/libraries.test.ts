import assert from 'node:assert/strict'
import { test } from 'node:test'
import { libraryAt } from './libraries.ts'
import { memoryFault, startFault } from './prologue.ts'

test('files are taken for libraries by their names', () => {
  const check = (path: string, want: string | undefined) => assert.equal(libraryAt(path, false), want, path)
  check('/usr/lib/x86_64-linux-gnu/libssl.so.3', 'openssl')
  check('/usr/lib/libssl.so.1.1', 'openssl')
  check('/opt/app/libssl-8f2c1d.so.1.1', 'openssl')
  check('/usr/lib/libssl3.so', undefined) // NSS
  check('/usr/lib/libgnutls.so.30.34.3', 'gnutls')
  check('/usr/lib/libgnutls-dane.so.0', undefined)
  check('/usr/lib/libgnutlsxx.so.30', undefined)
  check('/usr/lib/libnode.so.115', 'openssl-static')
  check('/usr/lib/libcrypto.so.3', undefined)
  check('/libssl.so.3/readme', undefined)
  assert.equal(libraryAt('/usr/bin/node', true), 'openssl-static')
})

test('a function begins with an instruction that functions begin with', () => {
  const x64 = (hex: string) => startFault(Buffer.from(hex.padEnd(32, '0'), 'hex'), 'x64', 64)
  for (const hex of [
    'f30f1efa4883',
    '4883ec1864488b',
    '415741564989',
    '4885ff0f84',
    '554889e5',
    '4531c031c9e9',
  ])
    assert.equal(x64(hex), undefined, hex)
  assert.match(x64('cc90')!, /breakpoint/)
  assert.match(x64('00'.repeat(16))!, /unknown function start/)
  assert.match(x64('c3')!, /unknown function start/)
  const arm = (word: number, offset = 64) => {
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32LE(word)
    return startFault(bytes, 'arm64', offset)
  }
  assert.equal(arm(0xd503233f), undefined) // paciasp
  assert.equal(arm(0xa9bd7bfd), undefined) // stp x29, x30, [sp, #-48]!
  assert.match(arm(0)!, /not an instruction/)
  assert.match(arm(0xd4200000)!, /not an instruction/) // brk #0
  assert.match(arm(0xd503233f, 66)!, /not the start of an instruction/)
})

test('memory may differ from the file by the breakpoint of another tracer alone', () => {
  const file = Buffer.from('4883ec1864488b0425280000', 'hex')
  const other = (at: number, value: number) => {
    const bytes = Buffer.from(file)
    bytes[at] = value
    return bytes
  }
  assert.equal(memoryFault(file, file, 'x64'), undefined)
  assert.equal(memoryFault(file, other(0, 0xcc), 'x64'), undefined)
  assert.match(memoryFault(file, other(5, 0xcc), 'x64')!, /differs from the file/)
  assert.match(memoryFault(file, file.subarray(0, 4), 'x64')!, /differs from the file/)
})
