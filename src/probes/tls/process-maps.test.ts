import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { libraryAt } from './libraries.ts'
import { programOf, readMappings, readMemory } from './process-maps.ts'
import { memoryFault, startFault } from './prologue.ts'

const proc = mkdtempSync(join(tmpdir(), 'svc-maps-'))
after(() => rmSync(proc, { recursive: true }))

function mappings(text: string) {
  mkdirSync(join(proc, '7'), { recursive: true })
  writeFileSync(join(proc, '7/maps'), text)
  return readMappings(proc, 7)
}

test('of the mappings those of files that are run are listed', () => {
  const found = mappings(
    [
      '00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon',
      '00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus-daemon',
      '7f01-7f05 r-xp 00000000 00:00 0 ',
      '35b1800000-35b1820000 rwxp 00001000 fd:1a 135522  /usr/lib/a b/libssl.so.3 (deleted)',
      '7ffe7b1e0000-7ffe7b1e2000 r-xp 00000000 00:00 0   [vdso]',
      'ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]',
      'nonsense',
    ].join('\n'),
  )
  assert.deepEqual(found, [
    {
      range: '400000-452000',
      start: 0x400000,
      size: 0x52000,
      offset: 0,
      file: '08:02:173521',
      path: '/usr/bin/dbus-daemon',
    },
    {
      range: '35b1800000-35b1820000',
      start: 0x35b1800000,
      size: 0x20000,
      offset: 0x1000,
      file: 'fd:1a:135522',
      path: '/usr/lib/a b/libssl.so.3',
    },
  ])
})

test('a list that is longer than a piece is read whole, and a short one after it alone', () => {
  const line = (i: number) =>
    `${(i * 4096).toString(16)}-${((i + 1) * 4096).toString(16)} r--p 00000000 08:02 ${i} /usr/lib/lib${i}.so\n`
  const many = Array.from({ length: 20_000 }, (_, i) => line(i + 1)).join('')
  assert.deepEqual(mappings(`${many}1000-2000 r-xp 00000000 08:02 5 /usr/lib/last.so`).length, 1)
  assert.deepEqual(mappings('1000-2000 r-xp 00000000 08:02 5 /x\n').length, 1)
  assert.deepEqual(mappings(''), [])
})

test('this process has its own program among them, with the bytes of its file', () => {
  const program = programOf('/proc', process.pid)!
  assert.equal(program, process.execPath)
  const mapping = readMappings('/proc', process.pid).find(({ path }) => path === program)!
  assert.equal(readMemory('/proc', process.pid, mapping.start, 16).length, 16)
  assert.equal(programOf('/proc', 2 ** 30), undefined)
  assert.throws(() => readMappings('/proc', 2 ** 30), { code: 'ENOENT' })
})

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
  assert.match(x64('00'.repeat(16))!, /no start of a function/)
  assert.match(x64('c3')!, /no start of a function/)
  const arm = (word: number, offset = 64) => {
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32LE(word)
    return startFault(bytes, 'arm64', offset)
  }
  assert.equal(arm(0xd503233f), undefined) // paciasp
  assert.equal(arm(0xa9bd7bfd), undefined) // stp x29, x30, [sp, #-48]!
  assert.match(arm(0)!, /no instruction/)
  assert.match(arm(0xd4200000)!, /no instruction/) // brk #0
  assert.match(arm(0xd503233f, 66)!, /does not begin/)
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
  assert.match(memoryFault(file, other(5, 0xcc), 'x64')!, /other bytes/)
  assert.match(memoryFault(file, file.subarray(0, 4), 'x64')!, /other bytes/)
})
