import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  lchownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { openForeign, RefusedFile, readForeign } from './foreign-file.ts'

const [alice, mallory] = [60_001, 60_002]
const scratch = mkdtempSync(join(tmpdir(), 'svc-foreign-'))
after(() => rmSync(scratch, { recursive: true }))
chmodSync(scratch, 0o755)

/** A new directory of a user. */
function directoryOf(user: number, mode = 0o755): string {
  const path = mkdtempSync(join(scratch, 'd-'))
  chownSync(path, user, user)
  chmodSync(path, mode)
  return path
}

function write(path: string, user: number, mode = 0o640, text = 'secret\n'): string {
  writeFileSync(path, text)
  chownSync(path, user, user)
  chmodSync(path, mode)
  return path
}

function link(target: string, path: string, user: number): string {
  symlinkSync(target, path)
  lchownSync(path, user, user)
  return path
}

const read = (path: string, root?: string) => readForeign(path, 1_000, root)?.toString()
const secret = () => write(join(directoryOf(0), 'secret'), 0, 0o600)

test('files are read that lie where their owner, or root, put them', { skip: withoutRoot }, () => {
  for (const owner of [0, alice]) {
    const path = write(join(directoryOf(owner), 'log'), alice, 0o600, 'line\n')
    assert.equal(read(path), 'line\n')
    assert.equal(read(join(path, '../log')), 'line\n')
  }
  // As in /tmp, and what everybody may read.
  assert.equal(read(write(join(directoryOf(0, 0o1777), 'log'), alice)), 'secret\n')
  assert.equal(read(write(join(directoryOf(mallory), 'log'), 0, 0o644)), 'secret\n')
})

test('links are followed of root and of the owner of what they lead to', { skip: withoutRoot }, () => {
  const path = write(join(directoryOf(alice), 'log'), alice, 0o600)
  assert.equal(read(link(path, join(directoryOf(0), 'a'), 0)), 'secret\n')
  assert.equal(read(link(path, join(directoryOf(alice), 'a'), alice)), 'secret\n')
  assert.equal(read(link(path, join(directoryOf(0, 0o1777), 'a'), alice)), 'secret\n')
  // Over several, relative and of directories, as those of the kubelet.
  const [pods, containers] = [directoryOf(0), directoryOf(0)]
  link(join(path, '..'), join(pods, 'pod'), 0)
  link(`../${pods.slice(scratch.length + 1)}/pod/./log`, join(containers, 'c.log'), 0)
  assert.equal(read(join(containers, 'c.log')), 'secret\n')
})

test('no link of another user leads to a file', { skip: withoutRoot }, () => {
  const refused = (path: string, why: RegExp) =>
    assert.throws(
      () => openForeign(path),
      (error: Error) => error instanceof RefusedFile && why.test(error.message) && error.hint !== '',
    )
  const target = secret()
  const made = /the link \S+ in it belongs to user 60002/
  refused(link(target, join(directoryOf(mallory), 'app.log'), mallory), made)
  refused(link(target, join(directoryOf(0, 0o1777), 'app.log'), mallory), made)
  refused(
    link(write(join(directoryOf(alice), 'log'), alice), join(directoryOf(mallory), 'app.log'), mallory),
    made,
  )
  // Of a directory on the way, and behind a link of root.
  const own = directoryOf(mallory)
  link(join(target, '..'), join(own, 'logs'), mallory)
  refused(join(own, 'logs/secret'), made)
  refused(link(join(own, 'logs/secret'), join(directoryOf(0), 'a'), 0), made)
  // One of root, which somebody else may have linked or moved there.
  refused(link(target, join(directoryOf(mallory), 'app.log'), 0), /may write to its directory/)
  refused(link(target, join(directoryOf(0, 0o777), 'app.log'), 0), /may write to its directory/)
})

test('no other name of a file that is closed to others leads to it', { skip: withoutRoot }, () => {
  const refused = (path: string) => assert.throws(() => openForeign(path), RefusedFile)
  for (const directory of [directoryOf(mallory), directoryOf(0, 0o1777)]) {
    linkSync(secret(), join(directory, 'app.log'))
    refused(join(directory, 'app.log'))
  }
  const moved = join(directoryOf(mallory), 'app.log')
  renameSync(secret(), moved)
  refused(moved)
  // Without the sticky bit anybody moves what lies in one such directory to another.
  const anybodys = join(directoryOf(0, 0o777), 'app.log')
  renameSync(secret(), anybodys)
  refused(anybodys)
})

test('who renames a directory that is closed to them shows nothing of it', { skip: withoutRoot }, () => {
  for (const home of [directoryOf(mallory), directoryOf(0, 0o777)]) {
    mkdirSync(join(home, 'private'), { mode: 0o700 })
    write(join(home, 'private/app.log'), 0, 0o600)
    execFileSync('mv', ['private', 'logs'], { cwd: home, uid: mallory, gid: mallory })
    assert.throws(() => openForeign(join(home, 'logs/app.log')), RefusedFile)
    // What they may read anyhow.
    chmodSync(join(home, 'logs/app.log'), 0o644)
    assert.equal(read(join(home, 'logs/app.log')), 'secret\n')
  }
  const shared = directoryOf(0, 0o1777)
  mkdirSync(join(shared, 'logs'), { mode: 0o700 })
  write(join(shared, 'logs/app.log'), 0, 0o600)
  assert.equal(read(join(shared, 'logs/app.log')), 'secret\n')
})

test('what is no file is not opened, and nobody is waited for', { skip: withoutRoot }, () => {
  const directory = directoryOf(0)
  execFileSync('mkfifo', [join(directory, 'fifo')])
  execFileSync('mknod', [join(directory, 'zero'), 'c', '1', '5'])
  mkdirSync(join(directory, 'directory'))
  for (const name of ['fifo', 'zero', 'directory', '.'])
    assert.throws(() => openForeign(join(directory, name)), RefusedFile)
  assert.throws(() => openForeign(join(directory, 'none')), { code: 'ENOENT' })
  link('loop', join(directory, 'loop'), 0)
  assert.throws(() => openForeign(join(directory, 'loop')), { code: 'ELOOP' })
  // A link of the kernel, which leads to what this process has open.
  assert.throws(() => openForeign('/dev/stdin'), /not a regular file|ENOENT|begin/)
})

test('nothing above the root is reached', { skip: withoutRoot }, () => {
  const root = directoryOf(0)
  mkdirSync(join(root, 'etc'))
  write(join(root, 'etc/passwd'), 0, 0o644, 'inside\n')
  link('/etc/passwd', join(root, 'absolute'), 0)
  link('../../../../etc/passwd', join(root, 'etc/relative'), 0)
  for (const path of ['/absolute', '/etc/relative', '/../../etc/passwd'])
    assert.equal(read(path, root), 'inside\n', path)
})

test('who exchanges a directory for a link meanwhile shows nothing', { skip: withoutRoot }, async () => {
  const target = secret()
  const directory = directoryOf(mallory)
  mkdirSync(join(directory, 'logs'), { mode: 0o755 })
  write(join(directory, 'logs/secret'), mallory, 0o644, 'own\n')
  chownSync(join(directory, 'logs'), mallory, mallory)
  link(join(target, '..'), join(directory, 'other'), mallory)
  const swap = 'cd "$1"; while :; do mv logs a; mv other logs; mv logs other; mv a logs; done'
  const swapper = spawn('sh', ['-c', swap, 'sh', directory], { uid: mallory, gid: mallory, stdio: 'ignore' })
  const ended = once(swapper, 'exit')
  const seen = new Map<string, number>()
  for (const until = performance.now() + 1_000; performance.now() < until; ) {
    let text: string
    try {
      const { fd } = openForeign(join(directory, 'logs/secret'))
      text = readFileSync(fd, 'utf8')
      closeSync(fd)
    } catch (error) {
      text = error instanceof RefusedFile ? 'refused' : 'gone'
    }
    seen.set(text, (seen.get(text) ?? 0) + 1)
    await new Promise(setImmediate)
  }
  swapper.kill('SIGKILL')
  await ended
  assert.equal(seen.get('secret\n'), undefined)
  assert.ok((seen.get('own\n') ?? 0) > 0 && seen.size > 1, JSON.stringify([...seen]))
})
