import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeDirectories } from './make-directories.ts'

function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-directories-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

test('all that is missing is made, and what is there stays as it is', t => {
  const directory = scratch(t)
  const inner = join(directory, 'a', 'b', 'c')
  makeDirectories(inner, 0o700)
  makeDirectories(inner, 0o755)
  makeDirectories(`${inner}/../d/`, 0o755)
  assert.equal(statSync(inner).mode & 0o777, 0o700)
  assert.ok(statSync(join(directory, 'a', 'b', 'd')).isDirectory())
})

test('where it cannot be made the error of the system says why, at once', t => {
  const directory = scratch(t)
  const file = join(directory, 'file')
  writeFileSync(file, '')
  symlinkSync('/nonexistent/away', join(directory, 'link'))
  assert.throws(() => makeDirectories(file, 0o700), { code: 'EEXIST' })
  assert.throws(() => makeDirectories(join(file, 'a'), 0o700), { code: 'ENOTDIR' })
  assert.throws(() => makeDirectories('/proc/1/nowhere/queue', 0o700), { code: 'ENOENT' })
  assert.throws(() => makeDirectories(join(directory, 'link', 'queue'), 0o700), { code: 'EEXIST' })
})
