import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UserNames } from './user-names.ts'

test('users have the first name that passwd gives them, taken up within a minute', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-users-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const pid of [1, 7]) mkdirSync(join(directory, String(pid), 'root/etc'), { recursive: true })
  const path = join(directory, '7/root/etc/passwd')
  let ms = 0
  const users = new UserNames(directory, () => ms)
  assert.equal(users.of(0, 7), '')
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
  assert.deepEqual([users.of(1000, 7), users.of(0, 7)], ['cart', ''])
  // The first process is the better witness.
  writeFileSync(join(directory, '1/root/etc/passwd'), 'root:x:0:\n')
  ms += 60_000
  assert.deepEqual([users.of(1000, 7), users.of(0, 7)], ['', 'root'])
})
