import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { programOf, readMappings } from './process-maps.ts'

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

test('this process has its own program among them', () => {
  const program = programOf('/proc', process.pid)!
  assert.equal(program, process.execPath)
  assert.ok(readMappings('/proc', process.pid).some(({ path }) => path === program))
  assert.equal(programOf('/proc', 2 ** 30), undefined)
  assert.throws(() => readMappings('/proc', 2 ** 30), { code: 'ENOENT' })
})
