// The queue on a disk that is full, read-only, broken or gone.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  attach,
  drain,
  itemCount,
  lockTable,
  numbered,
  openQueue,
  openStore,
  queueDirectory,
  until,
} from '../../../test/helpers/disk-store.ts'
import { withoutLoopMounts, withoutRoot } from '../../../test/helpers/host-needs.ts'
import { uncounted } from '../../../test/helpers/program.ts'
import { signals } from '../../foundation/model/signal.ts'
import { reserveOf } from './disk-store.ts'
import type { Files } from './log.ts'
import { realFiles } from './real-files.ts'

const Ki = 1024
const Mi = 1024 * Ki
const total = (drops: Record<string, number>) => Object.values(drops).reduce((sum, items) => sum + items, 0)

/** A small file system of its own. */
function tmpfs(t: { after(end: () => void): void }, size: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-queue-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory])
  t.after(() => {
    execFileSync('umount', ['-l', directory])
    rmSync(directory, { recursive: true })
  })
  return directory
}

/** A file system on a block device of its own, which can be made read-only while files are open for writing. */
function ext4(t: { after(end: () => void): void }) {
  const below = mkdtempSync(join(tmpdir(), 'svc-queue-'))
  const image = join(below, 'image')
  const directory = join(below, 'mount')
  mkdirSync(directory)
  execFileSync('truncate', ['--size=32M', image])
  execFileSync('mkfs.ext4', ['-q', '-F', image])
  let mounted = true
  const mount = () => execFileSync('mount', ['-o', 'loop', image, directory])
  const unmount = () => {
    execFileSync('umount', [directory])
    mounted = false
  }
  mount()
  t.after(() => {
    if (mounted) execFileSync('umount', ['-l', directory])
    rmSync(below, { recursive: true })
  })
  return {
    directory,
    unmount,
    abort: () => execFileSync('mount', ['-o', 'remount,abort', directory]),
    /** Checked first, as at a boot. */
    mountAgain() {
      spawnSync('e2fsck', ['-fy', image])
      mount()
      mounted = true
    },
  }
}

/** Files whose operations fail with a code as long as `code` is set. */
function failing() {
  const state: { write?: string; read?: string; remove?: string } = {}
  const failure = (code: string) => Object.assign(new Error(`${code}: made to fail`), { code })
  const files: Files = {
    ...realFiles,
    write(fd, parts) {
      if (state.write) throw failure(state.write)
      return realFiles.write(fd, parts)
    },
    read(fd, into, position) {
      if (state.read) throw failure(state.read)
      return realFiles.read(fd, into, position)
    },
    remove(path) {
      if (state.remove) throw failure(state.remove)
      realFiles.remove(path)
    },
  }
  return { state, files }
}

test('a full disk costs nothing while memory has room, and what waits there is written when the disk has', async t => {
  const { state, files } = failing()
  const directory = queueDirectory(t)
  const { queue, store, drops, said } = openQueue(directory, { files, memoryBytes: 10_000 })
  for (let n = 1; n <= 5; n++) queue.push(numbered(n, 100, 1 << n))
  state.write = 'ENOSPC'
  for (let n = 6; n <= 10; n++) queue.push(numbered(n, 100, 1 << n))
  assert.equal(queue.items, 55)
  assert.equal(store.state.state, 'degraded')
  assert.match(store.state.reason, /ENOSPC: made to fail; free space or inodes on the file system of /)
  const taken = [1, 2, 3, 4, 5, 6].map(() => queue.take()!)
  assert.deepEqual(taken.map(itemCount), [1, 2, 3, 4, 5, 6], 'in order, what is on the disk first')
  for (const at of [5, 1]) queue.putBack(taken[at]!)
  queue.settle(taken[0]!)
  delete state.write
  await until(() => store.state.state === 'ok', 'the disk works')
  assert.equal(queue.items, 54)
  assert.deepEqual([drops, said.length], [{}, 2])
  assert.match(said[0]!, /^warn: disk queue degraded/)
  assert.match(said[1]!, /^info: disk queue works again/)
  await store.close()
  const after = openQueue(directory)
  assert.deepEqual(drain(after.queue), [2, 3, 4, 5, 6, 7, 8, 9, 10])
  await after.store.close()
})

test('while the disk takes nothing memory is bounded, and the oldest that is nowhere else goes', async t => {
  for (const [code, reason] of [
    ['ENOSPC', 'disk_full'],
    ['EDQUOT', 'disk_full'],
    ['EROFS', 'disk_read_only'],
    ['EIO', 'disk_error'],
    ['EFBIG', 'disk_error'],
  ] as const) {
    const { state, files } = failing()
    const directory = queueDirectory(t)
    const { queue, store, drops } = openQueue(directory, { files, memoryBytes: 3000 })
    for (let n = 1; n <= 20; n++) queue.push(numbered(n))
    state.write = code
    for (let n = 21; n <= 60; n++) {
      queue.push(numbered(n))
      assert.ok(queue.memory <= 3000)
      assert.equal(queue.items + total(drops), (n * (n + 1)) / 2)
    }
    assert.deepEqual(Object.keys(drops), [reason])
    const first = queue.take()!
    queue.putBack(first)
    assert.deepEqual([itemCount(first), queue.oldestNumber], [1, 1])
    const names = drain(queue)
    assert.deepEqual(
      names.slice(0, 20),
      Array.from({ length: 20 }, (_, i) => i + 1),
      code,
    )
    assert.equal(names.at(-1), 60)
    assert.ok(names.length < 60 && names.every((name, i) => i === 0 || name > names[i - 1]!), code)
    await store.close()
    assert.equal(queue.items, 0)
  }
})

test('where old files cannot be removed the bound holds all the same', async t => {
  const { state, files } = failing()
  const { queue, store, drops } = openQueue(queueDirectory(t), {
    files,
    maxBytes: 1_000_000,
    memoryBytes: 100_000,
  })
  state.remove = 'EPERM'
  for (let n = 0; n < 200; n++) queue.push(numbered(1, 10_000))
  assert.ok(store.state.bytes <= 1_000_000, `${store.state.bytes}`)
  assert.match(
    store.state.reason,
    /is full, and its oldest files cannot be removed; allow the svc user to remove them/,
  )
  assert.equal(queue.items + drops.disk_error!, 200)
  delete state.remove
  await until(() => store.state.state === 'ok', 'files can be removed')
  assert.equal(queue.items + total(drops), 200)
  assert.ok(store.state.bytes <= 1_000_000, `${store.state.bytes}`)
  await store.close()
})

test('what is in memory only at the end is counted, what is on the disk is kept', async t => {
  const { state, files } = failing()
  const directory = queueDirectory(t)
  const { queue, store, drops } = openQueue(directory, { files })
  queue.push(numbered(1))
  state.write = 'EIO'
  queue.push(numbered(2))
  queue.push(numbered(3))
  queue.take()
  assert.equal(await queue.close(), 1)
  assert.deepEqual([drops, queue.items], [{ shutdown: 5 }, 1])
  await store.close()
  delete state.write
  const after = openQueue(directory)
  assert.equal(after.queue.recoveredItems, 1)
  await after.store.close()
})

test('a disk that cannot be read for a while holds its records back, and says when it can', async t => {
  const { state, files } = failing()
  const { queue, store, readied } = openQueue(queueDirectory(t), { files, memoryBytes: 1000 })
  for (let n = 1; n <= 10; n++) queue.push(numbered(n))
  state.read = 'EACCES'
  const before = drain(queue)
  assert.ok(before.length >= 2 && before.length < 10)
  assert.equal(store.state.state, 'degraded')
  queue.push(numbered(11))
  delete state.read
  let seen = 0
  await until(() => {
    if (readied() > seen) before.push(...drain(queue))
    seen = readied()
    return before.length >= 11
  }, 'the queue is ready')
  assert.deepEqual(before, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  assert.equal(store.state.state, 'ok')
  await store.close()
})

test('below the reserve the disk counts as full, before it is', async t => {
  let free = 50 * Mi
  const files: Files = { ...realFiles, space: () => ({ free, total: 1000 * Mi }) }
  const { queue, store, drops, directory } = openQueue(queueDirectory(t), { files, reserve: reserveOf })
  queue.push(numbered(1))
  queue.bury(numbered(1), 'refused')
  assert.ok(!existsSync(join(directory, 'v1/default/traces/dlq')), 'what is left is for others')
  assert.equal(store.state.state, 'degraded')
  assert.match(
    store.state.reason,
    /has 50 MiB free; svc keeps 64 MiB free for other programs; free 15 MiB there, or set /,
  )
  free = 70 * Mi
  await until(() => store.state.state === 'ok', 'there is room again')
  assert.deepEqual([queue.items, drops, drain(queue)], [1, {}, [1]])
  await store.close()
})

test('the reserve is 64 MiB or 5 %, and a quarter of what is small', () => {
  const check = (totalBytes: number, want: number) => assert.equal(reserveOf(totalBytes), want)
  check(24 * Mi, 6 * Mi)
  check(1024 * Mi, 64 * Mi)
  check(100 * 1024 * Mi, 5 * 1024 * Mi)
  check(0, 0)
})

test('on a file system that fills nothing is lost uncounted, and it goes on when there is room', {
  skip: withoutRoot,
}, async t => {
  const mount = tmpfs(t, '24m')
  const directory = join(mount, 'queue')
  const { queue, store, drops, said } = openQueue(directory, {
    memoryBytes: Mi,
    reserve: () => 0,
    maxBytes: 1e9,
  })
  let pushed = 0
  const push = () => {
    pushed++
    queue.push(numbered(1, 100_000))
  }
  while (store.state.state === 'ok') push()
  assert.ok(pushed > 200, `${pushed}`)
  for (let n = 0; n < 50; n++) push()
  assert.deepEqual(Object.keys(drops), ['disk_full'])
  assert.equal(queue.items + total(drops), pushed)
  // Delivering makes room, without any help from outside.
  let delivered = 0
  const deliver = (count: number) => {
    for (let entry = queue.take(); entry && count-- > 0; entry = queue.take()) {
      assert.equal(itemCount(entry), 1)
      queue.settle(entry)
      delivered++
    }
  }
  deliver(150)
  await until(() => store.state.state === 'ok', 'there is room again')
  const lost = total(drops)
  for (let n = 0; n < 20; n++) push()
  assert.equal(total(drops), lost)
  assert.equal(queue.items + lost + delivered, pushed)
  assert.deepEqual(
    said.map(line => line.slice(0, 16)),
    ['warn: disk queue', 'info: disk queue'],
  )
  // Another one fills it, and makes room again.
  writeFileSync(join(mount, 'other'), Buffer.alloc(Mi))
  await store.close()
  const after = openQueue(directory, { reserve: () => 0 })
  assert.equal(after.queue.items, queue.items)
  assert.equal(drain(after.queue).length, pushed - lost - delivered)
  assert.deepEqual(after.drops, {})
  await after.store.close()
})

test('a file system that is read-only is refused, and leaves the queue as it is', {
  skip: withoutRoot,
}, async t => {
  const directory = tmpfs(t, '24m')
  const remount = (how: string) => execFileSync('mount', ['-o', `remount,${how}`, directory])
  const { queue, store } = openQueue(directory, { memoryBytes: 1000 })
  for (let n = 1; n <= 10; n++) queue.push(numbered(n, 200))
  await store.close()
  remount('ro')
  assert.throws(
    () => openStore(directory),
    /cannot open the queue in \S+: .*EROFS.*; remount the file system of /,
  )
  remount('rw')
  const after = openQueue(directory)
  assert.deepEqual(drain(after.queue), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  await after.store.close()
})

test('a file system that goes read-only under it is waited for in memory, and nothing is lost', {
  skip: withoutLoopMounts,
}, async t => {
  const { directory: mount, abort, unmount, mountAgain } = ext4(t)
  const directory = join(mount, 'queue')
  const first = openQueue(directory, { memoryBytes: 5000, fsyncMs: 1 })
  for (let n = 1; n <= 10; n++) first.queue.push(numbered(n, 100, 1 << n))
  first.queue.settle(first.queue.take()!)
  await until(() => first.queue.securedNumber >= 10, 'all is on the disk')
  // As after an error of the device: every write fails, with EROFS or EIO.
  abort()
  for (let n = 11; n <= 60; n++) first.queue.push(numbered(n, 100, 1 << (n % 31)))
  assert.match(
    first.store.state.reason,
    /E(ROFS|IO).*; (remount the file system of .* writable|look for device errors)/,
  )
  const { queue, drops } = first
  assert.equal(queue.items + total(drops), 1829)
  assert.ok(Object.keys(drops).every(reason => reason === 'disk_read_only' || reason === 'disk_error'))
  const delivered = drain(queue)
  assert.deepEqual(delivered.slice(0, 9), [2, 3, 4, 5, 6, 7, 8, 9, 10], 'what is on the disk can be read')
  assert.equal(1 + delivered.reduce((sum, items) => sum + items, 0) + total(drops), 1830)
  await new Promise(resolve => setTimeout(resolve, 300)) // a cursor fails
  await first.store.close()
  // Mounted again after fsck: what was there is there, and comes again, for no cursor could be written.
  unmount()
  mountAgain()
  const after = openQueue(directory)
  assert.deepEqual(
    drain(after.queue).filter(items => items > 1),
    [2, 3, 4, 5, 6, 7, 8, 9, 10],
  )
  assert.deepEqual(after.drops, {})
  await after.store.close()
})

test('of a directory that somebody removes, what is in memory goes on in a new one', async t => {
  const directory = queueDirectory(t)
  const { queue, store, drops, said } = openQueue(directory, { memoryBytes: 2000 })
  for (let n = 1; n <= 20; n++) queue.push(numbered(n, 100, 1 << (n % 31)))
  const [first, second] = [queue.take()!, queue.take()!]
  queue.settlePart(second, 1)
  rmSync(join(directory, 'v1'), { recursive: true })
  rmSync(join(directory, 'LOCK'))
  await until(() => said.some(line => line.startsWith('info')), `there is a new directory, ${said}`)
  assert.equal(queue.items + total(drops), 209)
  assert.deepEqual(Object.keys(drops), ['disk_error'])
  assert.ok(existsSync(join(directory, 'LOCK')))
  queue.push(numbered(21))
  queue.putBack(second)
  queue.settle(first)
  await store.close()
  const after = openQueue(directory)
  assert.deepEqual(drain(after.queue), [2, 3, 4, 5, 21], 'what memory had room for')
  await after.store.close()
})

test('a directory that cannot be used is refused with what is wrong and how to fix it', t => {
  const directory = queueDirectory(t)
  const file = join(directory, 'file')
  writeFileSync(file, '')
  assert.throws(() => openStore(file), /^Error: cannot open the queue in \S+file: EEXIST/)
  assert.throws(() => openStore(join(file, 'queue')), /cannot open the queue in \S+queue: ENOTDIR/)
  const locked = join(directory, 'locked')
  mkdirSync(locked)
  writeFileSync(join(locked, 'LOCK'), '4711 some-boot\n')
  assert.throws(
    () => openStore(locked, { lock: () => false }),
    /locked: process 4711 holds its lock; stop that process, or set a different pipeline\.export/,
  )
})

test('the signal whose directory cannot be used is named', t => {
  const directory = queueDirectory(t)
  mkdirSync(join(directory, 'v1/default'), { recursive: true })
  writeFileSync(join(directory, 'v1/default/logs'), '')
  assert.throws(
    () => openStore(directory),
    /^Error: cannot open the queue in \S+: cannot use the logs directory: EEXIST.*default\/logs'; check \S+\/v1\/default\/logs$/,
  )
})

test('a directory without rights is refused with the hint', { skip: withoutRoot }, t => {
  const directory = queueDirectory(t)
  const logs = join(directory, 'v1/default/logs')
  mkdirSync(logs, { recursive: true })
  chmodSync(logs, 0)
  const helper = join(import.meta.dirname, '../../../test/helpers/disk-store.ts')
  const script = `
    const { openStore } = await import(${JSON.stringify(helper)})
    process.setuid(65534)
    try { openStore(${JSON.stringify(directory)}) } catch (error) { console.log(error.message) }`
  const chown = spawnSync('chown', ['-R', '65534', directory])
  assert.equal(chown.status, 0)
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script])
  assert.match(
    String(run.stdout),
    /^cannot open the queue in \S+: cannot use the logs directory: EACCES.*; give the svc user read and write access to \S+\/logs$/m,
  )
})

test('a directory of another user, or open to others, is not used', { skip: withoutRoot }, t => {
  const directory = queueDirectory(t)
  const refusal = () => {
    try {
      openStore(directory)
    } catch (error) {
      return (error as Error).message
    }
  }
  chmodSync(directory, 0o777)
  assert.equal(
    refusal(),
    `cannot open the queue in ${directory}: any user may write to ${directory}; chmod o-w ${directory}`,
  )
  chmodSync(directory, 0o700)
  assert.equal(spawnSync('chown', ['65534', directory]).status, 0)
  assert.match(refusal() ?? '', /belongs to user 65534, who could change what svc keeps there; chown 0 /)
  assert.deepEqual(readdirSync(directory), [])
})

test('links and pipes that another user put there lead nowhere and keep nobody waiting', async t => {
  const directory = queueDirectory(t)
  const target = join(directory, 'target')
  writeFileSync(target, 'precious')
  const traces = join(directory, 'v1/default/traces')
  mkdirSync(traces, { recursive: true })
  symlinkSync(target, join(traces, '0000000000000001.seg'))
  execFileSync('mkfifo', [join(directory, 'v1/default/traces', '0000000000000003.seg')])
  const { queue, store } = openQueue(directory)
  // Not unfinished at the start, and then under the name that the cursor is written to.
  symlinkSync(target, join(traces, 'cursor.json.tmp'))
  queue.push(numbered(1))
  assert.deepEqual(drain(queue), [1])
  await store.close()
  assert.equal(readFileSync(target, 'latin1'), 'precious')
})

test('the LOCK is removed and another process takes the directory: this one goes on in memory', async t => {
  const directory = queueDirectory(t)
  const lock = lockTable()
  const { queue, store, drops } = openQueue(directory, { lock, memoryBytes: 2000 })
  for (let n = 1; n <= 20; n++) queue.push(numbered(n, 100, 1 << n))
  rmSync(join(directory, 'LOCK'))
  const rival = openQueue(directory, { lock })
  await until(() => store.state.state === 'degraded', 'it sees the other one')
  assert.match(store.state.reason, /process \d+ holds its lock; stop that process, or .*; then restart svc$/)
  rival.queue.push(numbered(30))
  queue.push(numbered(21))
  assert.equal(queue.items + drops.disk_error!, 231)
  drain(queue)
  await store.close()
  assert.deepEqual(drain(rival.queue), [...Array.from({ length: 20 }, (_, i) => i + 1), 30])
  await rival.store.close()
})

test('a disk that hangs takes one thread of the pool, and the end does not wait for it', async t => {
  let hanging = 0
  const files: Files = { ...realFiles, sync: () => new Promise(() => hanging++) }
  const { store } = openStore(queueDirectory(t), { files, fsyncMs: 1, closeMs: undefined })
  const queues = signals.map(signal => attach(store, signal).queue)
  for (let n = 1; n <= 20; n++) for (const queue of queues) queue.push(numbered(n))
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.equal(hanging, 1)
  const begin = performance.now()
  await store.close()
  assert.ok(performance.now() - begin < 20_000)
  assert.deepEqual(
    queues.map(queue => queue.items),
    [210, 210, 210, 210],
  )
})

test('a limit on the size of files ends neither the process nor the queue', t => {
  const directory = queueDirectory(t)
  const helper = join(import.meta.dirname, '../../../test/helpers/disk-store.ts')
  const script = `
    const { openQueue, numbered, drain } = await import(${JSON.stringify(helper)})
    const { queue, store, drops } = openQueue(${JSON.stringify(directory)}, { memoryBytes: 20_000 })
    for (let n = 0; n < 100; n++) queue.push(numbered(1, 1000))
    const { state, reason } = store.state
    const delivered = drain(queue).length
    await store.close()
    console.log(JSON.stringify({ state, reason, delivered, drops }))`
  const limited = 'ulimit -f 40; exec "$0" --input-type=module -e "$1"'
  const run = spawnSync('bash', ['-c', limited, process.execPath, script], { env: uncounted() })
  assert.equal(run.status, 0, String(run.stderr))
  const { state, reason, delivered, drops } = JSON.parse(String(run.stdout))
  assert.equal(state, 'degraded')
  assert.match(reason, /EFBIG.*; raise the file size limit \(LimitFSIZE= of the service, ulimit -f\)$/)
  assert.equal(delivered + drops.disk_error, 100)
  assert.ok(delivered > 50, `${delivered}`)
})
