import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { UserNames } from './user-names.ts'

test('users have the first name that passwd gives them, taken up within a minute', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-users-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const pid of [1, 7]) mkdirSync(join(directory, String(pid), 'root/etc'), { recursive: true })
  const path = join(directory, '7/root/etc/passwd')
  let ms = 0
  const users = new UserNames(directory, () => ms)
  assert.equal(users.of(0, 7), '')
  assert.equal(users.of(1000, 7), '')
  writeFileSync(
    path,
    'root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n# x\n\nbad name:x:5:5::/:\nshop:x:1000:\nx:x:-1:\n',
  )
  assert.equal(users.of(0, 7), '')
  ms += 60_000
  assert.deepEqual(
    [0, 5, 1000, -1, 7].map(uid => users.of(uid, 7)),
    ['root', '', 'shop', '', ''],
  )
  writeFileSync(path, 'cart:x:1000:\n')
  utimesSync(path, 1, 1)
  assert.equal(users.of(1000, 7), 'shop')
  ms += 60_000
  assert.deepEqual([users.of(0, 7), users.of(1000, 7)], ['', 'cart'])
  // What others see as passwd may be of their own making.
  writeFileSync(path, 'root:x:1000:\n')
  ms += 60_000
  assert.equal(users.of(1000, 7), '')
  mkdirSync(join(directory, '7/ns'))
  symlinkSync('user:[4026532000]', join(directory, '7/ns/user'))
  assert.equal(users.of(0, 7), '')
  assert.equal(users.of(1000, 7), '')
  // The first process is the better witness.
  writeFileSync(join(directory, '1/root/etc/passwd'), 'root:x:0:\n')
  ms += 60_000
  assert.deepEqual([users.of(1000, 7), users.of(0, 7)], ['', 'root'])
})

test('whatever stands in passwd, a name is one that users may have', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-users-'))
  t.after(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, '1/root/etc'), { recursive: true })
  const word = fc.oneof(fc.string({ unit: 'binary' }), fc.nat(3).map(String), fc.constant('root'))
  const line = fc.array(word, { maxLength: 5 }).map(words => words.join(':'))
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), lines => {
      writeFileSync(join(directory, '1/root/etc/passwd'), lines.join('\n'))
      const users = new UserNames(directory, () => 0)
      for (let uid = 0; uid < 4; uid++) assert.match(users.of(uid, 7), /^([A-Za-z_][\w.$-]{0,255})?$/)
    }),
  )
})
