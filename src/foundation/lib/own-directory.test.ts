import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { makeOwnDirectory } from './own-directory.ts'

const user = 60_002
function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-own-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

test('a directory is made for its owner alone, and taken again', t => {
  const directory = join(scratch(t), 'a/b')
  for (let i = 0; i < 2; i++) makeOwnDirectory(directory)
  assert.equal(statSync(directory).mode & 0o777, 0o700)
  symlinkSync('a', join(directory, '../../link'))
  makeOwnDirectory(join(directory, '../../link/./b/../b'))
})

test('one of another user is refused, with what to do', { skip: withoutRoot }, t => {
  const directory = join(scratch(t), 'queue')
  mkdirSync(directory)
  chownSync(directory, user, user)
  assert.throws(() => makeOwnDirectory(directory), {
    message: `${directory} belongs to user ${user}, who could change what svc keeps there; chown 0 ${directory}`,
  })
  // Nothing is made below it either.
  assert.throws(() => makeOwnDirectory(join(directory, 'a/b')), /belongs to user 60002/)
  assert.ok(!existsSync(join(directory, 'a')))
})

test('one that others may write to is refused, and so is a way there', { skip: withoutRoot }, t => {
  const top = scratch(t)
  const directory = join(top, 'state/queue')
  makeOwnDirectory(directory)
  const refused = (mode: number, path: string, why: RegExp) => {
    const before = statSync(path).mode
    chmodSync(path, mode)
    assert.throws(() => makeOwnDirectory(directory), why)
    chmodSync(path, before)
  }
  refused(0o777, directory, /any user may write to .*queue; chmod o-w/)
  refused(0o1777, directory, /any user may write/)
  refused(0o777, join(top, 'state'), /any user may write to .*state; chmod o-w/)
  chownSync(directory, 0, user)
  refused(0o770, directory, /group 60002 may write to .*queue; chmod g-w/)
  chmodSync(join(top, 'state'), 0o1777)
  makeOwnDirectory(directory)
  makeOwnDirectory(join(top, 'state'), { isShared: true })
  const link = join(top, 'state/link')
  symlinkSync(directory, link)
  makeOwnDirectory(link)
  lchownSync(link, user, user)
  assert.throws(
    () => makeOwnDirectory(link),
    /user 60002 made the link .* could point it elsewhere; chown -h 0/,
  )
})
