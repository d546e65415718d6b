import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isOfHost, mayHangAt } from './mapped-mounts.ts'

const withoutRoot = process.geteuid?.() === 0 ? false : 'needs root'
const nobody = 65534
const scratch = mkdtempSync(join(tmpdir(), 'svc-mounts-'))
const running: ChildProcess[] = []
const mounted: string[] = []

after(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null)
      await new Promise(resolve => child.once('exit', resolve))
  }
  for (const point of mounted) execFileSync('umount', [point])
  rmSync(scratch, { recursive: true, force: true })
})

/** Directories of a user, with a program in `low`. */
function homeOf(user: number): string {
  const home = mkdtempSync(join(scratch, 'home-'))
  for (const name of ['low', 'more', 'upon']) mkdirSync(join(home, name))
  copyFileSync('/bin/sleep', join(home, 'low/sleep'))
  chmodSync(join(home, 'low/sleep'), 0o755)
  chmodSync(scratch, 0o755)
  execFileSync('chown', ['-R', `${user}:${user}`, home])
  return home
}

async function started(
  program: string,
  args: readonly string[],
  executable: string,
  user = 0,
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', uid: user, gid: user })
  running.push(child)
  const link = `/proc/${child.pid}/exe`
  for (const end = Date.now() + 10_000; !readlinkSync(link).endsWith(executable); ) {
    assert.ok(Date.now() < end && child.exitCode === null, `${program} ${args.join(' ')}`)
    await pause(10)
  }
  return child.pid!
}

/** Starts a program in namespaces of a user. */
function inOwn(home: string, mount: string, program: string): Promise<number> {
  const script = `cd ${home} && ${mount} && exec ${program} 600`
  return started('unshare', ['-Urm', 'sh', '-c', script], 'sleep', nobody)
}

const overlay = 'mount -t overlay -o lowerdir=low:more none upon'
const ofExe = (pid: number) => mayHangAt('/proc', pid, `/proc/${pid}/exe`)

test('programs of the host may be looked at, also those on an overlay of root', {
  skip: withoutRoot,
}, async () => {
  const own = await started('/bin/sleep', ['600'], 'sleep')
  assert.ok(isOfHost('/proc', own))
  assert.equal(ofExe(own), false)
  const home = homeOf(0)
  execFileSync('sh', ['-c', `cd ${home} && ${overlay}`])
  mounted.push(join(home, 'upon'))
  assert.equal(ofExe(await started(join(home, 'upon/sleep'), ['600'], 'upon/sleep')), false)
  assert.throws(() => mayHangAt('/proc', own, '/proc/self/no-link'), { code: 'ENOENT' })
})

test('an overlay that a user mounted is not looked at, as nobody knows what is below it', {
  skip: withoutRoot,
}, async () => {
  const home = homeOf(nobody)
  const pid = await inOwn(home, overlay, './upon/sleep')
  assert.equal(isOfHost('/proc', pid), false)
  assert.equal(ofExe(pid), true)
  assert.equal(mayHangAt('/proc', pid, `/proc/${pid}/root`), false)
  // Through a descriptor, or a way into the other namespace: here nobody shows that mount.
  const path = `/proc/${pid}/root${home}/upon/sleep`
  const other = await started(path, ['600'], 'sleep', nobody)
  assert.ok(isOfHost('/proc', other))
  assert.equal(ofExe(other), true)
})

test('what else a user mounted answers from memory', { skip: withoutRoot }, async () => {
  const home = homeOf(nobody)
  const pid = await inOwn(home, 'mount -t tmpfs none upon && cp low/sleep upon/', './upon/sleep')
  assert.equal(ofExe(pid), false)
})

test('a root on an overlay of a user is not looked into', { skip: withoutRoot }, async () => {
  const home = homeOf(nobody)
  const libraries = `for each in $(ldd low/sleep | grep -o '/[^ ]*'); do mkdir -p low$(dirname $each); cp $each low$each; done`
  const mount = `${libraries}; ${overlay}`
  const script = `cd ${home} && ${mount} && exec chroot upon /sleep 600`
  const pid = await started('unshare', ['-Urm', 'sh', '-c', script], 'sleep', nobody)
  assert.equal(mayHangAt('/proc', pid, `/proc/${pid}/root`), true)
  assert.equal(ofExe(pid), true)
})

test('a list of mounts of any length is not read, and its process is not believed', {
  skip: withoutRoot,
}, async () => {
  const home = homeOf(nobody)
  // Each line of 2 KB, so that few mounts are a long list.
  const deep = `p=; for i in 1 2 3 4 5 6 7; do p=$p$(printf '%0250d' 0)/; done; mkdir -p $p && for i in $(seq 160); do mount -t tmpfs none $p; done`
  const long = await inOwn(home, deep, 'low/sleep')
  assert.ok(readFileSync(`/proc/${long}/mountinfo`).length > 256 * 1024)
  assert.equal(ofExe(long), true)
  assert.equal(ofExe(await inOwn(homeOf(nobody), 'true', 'low/sleep')), false)
})
