// owns: host
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bindfs, mountBindfs } from '../../../test/helpers/bindfs.ts'
import { withoutBindfs } from '../../../test/helpers/host-needs.ts'
import { Following } from '../../../test/helpers/log-following.ts'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { RemoteFiles } from '../../kernel/remote-files.ts'
import { RemoteLogs } from './remote-logs.ts'

/** A follower that waits for a file system would keep this test from ever making it answer. */
function guard(t: TestContext, { servers }: Bindfs): void {
  const pids = servers.map(({ pid }) => pid).join(' ')
  const child = spawn('sh', ['-c', `sleep 30; kill -CONT ${pids}`], { stdio: 'ignore', detached: true })
  t.after(() => process.kill(-child.pid!, 'SIGKILL'))
}

test('logs on a file system that does not answer hold up no others, and are read on when it does', {
  skip: withoutBindfs,
}, async t => {
  const mount = await mountBindfs(t, 1)
  guard(t, mount)
  const [source, far, near] = ['source', 'm0', 'near'].map(name => join(mount.directory, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(near)
  writeFileSync(join(source, 'far.log'), 'before\n')
  symlinkSync(join(far, 'far.log'), join(near, 'link.log'))
  writeFileSync(join(near, 'near.log'), '')
  const following = await Following.start(
    [join(far, '*.log'), join(near, '*.log')],
    join(mount.directory, 'positions'),
  )
  await until('both are followed', 20_000, () => following.follower.state.files === 2)
  appendFileSync(join(source, 'far.log'), 'far 1\n')
  appendFileSync(join(near, 'near.log'), 'near 1\n')
  const has = (...lines: string[]) => lines.every(line => following.lines.includes(line))
  await until('both are read', 20_000, () => has('far 1', 'near 1'))

  await mount.hang()
  appendFileSync(join(source, 'far.log'), 'far 2\n')
  writeFileSync(join(source, 'other.log'), 'other 1\n')
  let longestMs = 0
  for (let i = 2, lastMs = performance.now(); i < 40; i++) {
    appendFileSync(join(near, 'near.log'), `near ${i}\n`)
    await sleep(30)
    longestMs = Math.max(longestMs, performance.now() - lastMs)
    lastMs = performance.now()
  }
  await until('the near one is read', 20_000, () => has('near 39'))
  assert.ok(!has('far 2'))
  assert.ok(longestMs < 10_000, `${longestMs} ms`)
  await until('it is said', 20_000, () => following.warnings.some(text => text.includes(far)))

  mount.answer()
  await until('the far one is read on', 20_000, () => has('far 2'))
  assert.equal(following.lines.filter(line => line === 'far 1').length, 1)
  assert.ok(!has('before'))
  await following.follower.stop() // what it has open keeps the mount
})

test('what users mounted, and what links of /proc lead to, is never touched', async t => {
  const files = new RemoteFiles({ log: silentLogger })
  const directory = mkdtempSync(join(tmpdir(), 'svc-far-logs-'))
  t.after(() => {
    files.close()
    rmSync(directory, { recursive: true })
  })
  const list = join(directory, 'mountinfo')
  const own = readFileSync('/proc/self/mountinfo', 'utf8')
  const served = (point: string, user: number) =>
    `900 1 0:900 / ${point} rw - fuse.x x rw,user_id=${user},group_id=0`
  mkdirSync(join(directory, 'theirs'))
  mkdirSync(join(directory, 'roots'))
  writeFileSync(
    list,
    `${own}${[served(join(directory, 'theirs'), 4242), served(join(directory, 'roots'), 0), served(join(directory, 'users.log'), 4242)].join('\n')}\n`,
  )
  symlinkSync('/proc/1/root/tmp', join(directory, 'through'))
  const far = new RemoteLogs(files, list)
  far.begin()
  const check = (name: string, want: boolean) => assert.equal(far.isHeld(join(directory, name)), want, name)
  const checkBeside = (name: string, want: boolean) =>
    assert.equal(far.isHeld(join(directory, name), true), want, name)
  check('a.log', false)
  check('roots/a.log', true)
  await until('it answers', 10_000, async () => {
    await far.ask()
    return !far.isHeld(join(directory, 'roots/a.log'))
  })
  check('theirs/a.log', true)
  check('through/a.log', true)
  // A listing tells nothing of what is mounted upon a file.
  check('users.log', true)
  checkBeside('users.log', true)
  checkBeside('a.log', false)
  far.begin()
  assert.deepEqual(far.held, [])
  check('users.log', true)
  assert.deepEqual(far.held, [join(directory, 'users.log')])
})
