import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  copyFileSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { Following, plainSource } from '../../../test/helpers/log-following.ts'
import type { LogFollowerOptions } from './log-follower.ts'
import { LogPositions } from './log-positions.ts'

/** A directory for logs, one for positions, and followers that are stopped at the end. */
function workplace(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-logs-'))
  const logs = join(directory, 'logs')
  mkdirSync(logs)
  const started: Following[] = []
  t.after(async () => {
    for (const following of started) await following.stop()
    rmSync(directory, { recursive: true })
  })
  return {
    directory,
    log: join(logs, 'app.log'),
    at: (name: string) => join(logs, name),
    async follow(patterns: string[] = [join(logs, 'app.log')], options: Partial<LogFollowerOptions> = {}) {
      const following = await Following.start(patterns, join(directory, 'state', 'positions'), options)
      started.push(following)
      return following
    },
  }
}

test('a link of another user shows nothing, and who operates svc is told so', {
  skip: withoutRoot,
}, async t => {
  const { directory, at, follow } = workplace(t)
  const user = 65_534
  chownSync(at('.'), user, user)
  writeFileSync(join(directory, 'secret'), 'root:$6$secret\n', { mode: 0o600 })
  symlinkSync(join(directory, 'secret'), at('app.log'))
  lchownSync(at('app.log'), user, user)
  writeFileSync(at('own'), 'own\n')
  chownSync(at('own'), user, user)
  symlinkSync('own', at('link.log'))
  lchownSync(at('link.log'), user, user)
  execFileSync('mkfifo', [at('pipe.log')])
  const warnings: string[] = []
  const warn = (message: string, hint: string) => warnings.push(`${message}: ${hint}`)
  const following = await follow([at('*.log')], { startAt: 'beginning', warn })
  await arrives(following, ['own'])
  // Exchanged under a log that is followed.
  unlinkSync(at('link.log'))
  symlinkSync(join(directory, 'secret'), at('link.log'))
  lchownSync(at('link.log'), user, user)
  writeFileSync(at('late.log'), 'late\n')
  chownSync(at('late.log'), user, user)
  await eventually(
    () => following.lines.includes('late') && warnings.length >= 2,
    () => JSON.stringify([following.lines, warnings]),
  )
  assert.deepEqual(following.lines, ['own', 'late'])
  for (const name of ['app', 'link'])
    assert.ok(
      warnings.some(
        each =>
          each.startsWith(`${at(`${name}.log`)} is not read: the link `) &&
          each.includes('belongs to user 65534'),
      ),
      warnings.join('\n'),
    )
})

async function eventually(holds: () => boolean, what: () => string): Promise<void> {
  const end = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > end) assert.fail(what())
    await sleep(20)
  }
}

async function arrives(following: Following, lines: readonly string[]): Promise<void> {
  await eventually(
    () => following.lines.length >= lines.length,
    () => `only ${following.lines.length} of ${lines.length} lines: ${following.lines.slice(-3)}`,
  )
  assert.deepEqual(following.lines, lines)
}

test('what is added to a file is handed on, line by line, and what was there before is not', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, 'old\n')
  const following = await follow()
  appendFileSync(log, 'one\ntw')
  await arrives(following, ['one'])
  appendFileSync(log, 'o\n\nthree\n')
  await arrives(following, ['one', 'two', '', 'three'])
  assert.equal(following.follower.state.files, 1)
  assert.equal(following.follower.state.lines, 4)
})

test('a file that is new is read from its beginning', async t => {
  const { log, follow } = workplace(t)
  const following = await follow()
  writeFileSync(log, 'one\n')
  await arrives(following, ['one'])
})

test('after a restart it goes on where it was, with files that came meanwhile', async t => {
  const { log, at, follow } = workplace(t)
  writeFileSync(log, 'old\n')
  const first = await follow([at('*.log')])
  appendFileSync(log, 'one\n')
  await arrives(first, ['one'])
  await first.stop()
  appendFileSync(log, 'two\n')
  writeFileSync(at('other.log'), 'three\n')
  const second = await follow([at('*.log')])
  await eventually(
    () => second.lines.length >= 2,
    () => `only ${second.lines}`,
  )
  assert.deepEqual(second.lines.toSorted(), ['three', 'two'])
})

test('a file that is renamed is read to its end before the one that follows it', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const following = await follow()
  appendFileSync(log, 'one\n')
  await arrives(following, ['one'])
  appendFileSync(log, 'two\n')
  renameSync(log, `${log}.1`)
  appendFileSync(`${log}.1`, 'three\n')
  writeFileSync(log, 'four\n')
  await arrives(following, ['one', 'two', 'three', 'four'])
  appendFileSync(`${log}.1`, 'late\n')
  await arrives(following, ['one', 'two', 'three', 'four', 'late'])
})

function rotate(log: string, keep = 20): void {
  for (let i = keep - 1; i > 0; i--)
    try {
      renameSync(`${log}.${i}`, `${log}.${i + 1}`)
    } catch {
      // There are not so many yet.
    }
  renameSync(log, `${log}.1`)
}

test('rotations between two looks, and while nobody looked, lose nothing', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const first = await follow()
  const lines: string[] = []
  const write = (files: number) => {
    for (let file = 0; file < files; file++) {
      for (let i = 0; i < 3; i++) {
        lines.push(`line ${lines.length}`)
        appendFileSync(log, `${lines.at(-1)}\n`)
      }
      rotate(log)
    }
  }
  write(5)
  appendFileSync(log, 'a\n')
  lines.push('a')
  await arrives(first, lines)
  await first.stop()
  const before = lines.length
  write(7)
  appendFileSync(log, 'b\n')
  lines.push('b')
  const second = await follow()
  await arrives(second, lines.slice(before))
  assert.equal(second.follower.state.lostRotations, 0)
  await second.stop()
})

test('what was rotated away while nobody looked is read, also where nothing followed it', async t => {
  const { directory, log, at, follow } = workplace(t)
  const first = await follow()
  appendFileSync(log, 'one\n')
  await arrives(first, ['one'])
  await first.stop()
  appendFileSync(log, 'two\n')
  renameSync(log, `${log}.1`)
  writeFileSync(log, 'three\n')
  renameSync(`${log}.1`, `${log}.2`)
  renameSync(log, `${log}.1`)
  // What the clock of the file system may say, whose steps are longer than those of the follower's.
  const { currentMs } = new LogPositions(join(directory, 'state', 'positions'), assert.fail)
    .ofPath(log)
    .at(-1)!
  utimesSync(`${log}.1`, (currentMs - 10) / 1000, (currentMs - 10) / 1000)
  utimesSync(`${log}.2`, (currentMs - 12) / 1000, (currentMs - 12) / 1000)
  writeFileSync(at('other.log.1'), 'of nobody\n')
  const second = await follow()
  await arrives(second, ['two', 'three'])
  writeFileSync(log, 'four\n')
  await arrives(second, ['two', 'three', 'four'])
  await second.stop()
  renameSync(log, `${log}.0`)
  const third = await follow()
  await eventually(
    () => third.follower.state.files === 0,
    () => 'what was read is read again',
  )
  assert.deepEqual(third.lines, [])
})

test('files that rotated files of other logs are called like are left alone', async t => {
  const { log, at, follow } = workplace(t)
  writeFileSync(log, '')
  const following = await follow()
  rotate(log)
  writeFileSync(at('app.log.lock'), 'no\n')
  writeFileSync(at('app.error.log'), 'no\n')
  writeFileSync(at('app-access.log'), 'no\n')
  writeFileSync(log, 'one\n')
  await arrives(following, ['one'])
})

test('a copy of a file that was emptied is read from where the file was left', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, 'a first line that makes it known\n')
  const following = await follow()
  appendFileSync(log, 'one\n')
  await arrives(following, ['one'])
  appendFileSync(log, 'two\n')
  copyFileSync(log, `${log}.1`)
  truncateSync(log)
  appendFileSync(log, 'three\n')
  await arrives(following, ['one', 'two', 'three'])
  assert.equal(following.follower.state.truncations, 1)
  await following.stop()
  appendFileSync(log, 'four\n')
  renameSync(`${log}.1`, `${log}.2`)
  copyFileSync(log, `${log}.1`)
  writeFileSync(log, 'five\n')
  await arrives(await follow(), ['four', 'five'])
})

test('a file that was emptied and has grown beyond its old length is noticed', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, 'first\n')
  const following = await follow()
  appendFileSync(log, 'one\n')
  await arrives(following, ['one'])
  writeFileSync(log, 'another beginning\nof other lines\n')
  await arrives(following, ['one', 'another beginning', 'of other lines'])
})

test('a writer that does not append leaves no zeros in its lines', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, 'first\n'.repeat(1000))
  const following = await follow()
  truncateSync(log)
  truncateSync(log, 6000)
  appendFileSync(log, 'one\n')
  await arrives(following, ['one'])
})

test('a rotation that was packed before it was read is told', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const first = await follow()
  appendFileSync(log, 'one\n')
  await arrives(first, ['one'])
  await first.stop()
  await sleep(20)
  writeFileSync(`${log}.1.gz`, gzipSync('one\ntwo\n'))
  unlinkSync(log)
  writeFileSync(log, 'three\n')
  const second = await follow()
  await arrives(second, ['three'])
  assert.equal(second.follower.state.lostRotations, 1)
  assert.match(second.warnings.join(), /app\.log not read to its end: it was compressed to .*\.1\.gz/)
})

test('a line that is too long comes in pieces that end with a character', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const following = await follow(undefined, { maxLineBytes: 1024 })
  const long = `${'ä'.repeat(1000)}x${'€'.repeat(100_000)}`
  appendFileSync(log, long)
  await eventually(
    () => following.lines.join('').length > long.length - 400,
    () => 'it does not come',
  )
  appendFileSync(log, '\nshort\n')
  await eventually(
    () => following.lines.at(-1) === 'short',
    () => 'its end does not come',
  )
  assert.equal(following.lines.slice(0, -1).join(''), long)
  for (const line of following.lines) assert.ok(Buffer.byteLength(line) <= 1024)
})

test('a long line that comes slowly is whole', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const following = await follow(undefined, { maxLineBytes: 300_000 })
  const line = Array.from({ length: 50_000 }, (_, i) => String(i))
    .join(' ')
    .slice(0, 300_000)
  for (let i = 0; i < 20; i++) {
    appendFileSync(log, line.slice(i * 15_000, (i + 1) * 15_000))
    await sleep(30)
  }
  appendFileSync(log, '\n')
  await arrives(following, [line.slice(0, 300_000)])
})

test('nothing is read while there is no room, and all of it afterwards', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  const following = await follow()
  following.pressure = 0.9
  appendFileSync(log, 'one\n')
  rotate(log)
  writeFileSync(log, 'two\n')
  await eventually(
    () => following.follower.state.isPaused,
    () => 'it does not pause',
  )
  following.pressure = 0.7
  await sleep(600)
  assert.deepEqual(following.lines, [])
  following.pressure = 0.5
  await arrives(following, ['one', 'two'])
})

test('a bound on what is read loses nothing: what is above it waits in its file', async t => {
  const { at, follow } = workplace(t)
  const following = await follow([at('*.log')])
  const { follower } = following
  follower.limit({ bytesPerSecond: 256 * 1024, rarer: 2 })
  const flood = Array.from({ length: 20_000 }, (_, i) => `${i} ${'x'.repeat(40)}`)
  writeFileSync(at('flood.log'), `${flood.join('\n')}\n`)
  follower.hurry()
  await eventually(
    () => following.lines.length > 0,
    () => 'nothing is read',
  )
  const began = performance.now()
  const read = follower.state.readBytes
  await sleep(1000)
  const perSecond = (1000 * (follower.state.readBytes - read)) / (performance.now() - began)
  assert.ok(perSecond < 512 * 1024, `${perSecond} bytes a second`)
  assert.ok(follower.state.behindBytes > 0 && follower.busyMs > 0)
  follower.limit({ bytesPerSecond: Number.POSITIVE_INFINITY, rarer: 1 })
  await arrives(following, flood)
})

test('what is not secured is read again', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, '')
  let isSecured = true
  const secured = () => (isSecured ? Promise.resolve() : Promise.reject(new Error('the queue is full')))
  const first = await follow(undefined, { secured })
  appendFileSync(log, 'one\n')
  await arrives(first, ['one'])
  isSecured = false
  appendFileSync(log, 'two\n')
  await arrives(first, ['one', 'two'])
  await first.stop()
  const second = await follow()
  await eventually(
    () => second.lines.includes('two'),
    () => 'it is lost',
  )
})

test('a link is followed to its file, and a file that two paths lead to is read once', async t => {
  const { directory, at, follow } = workplace(t)
  const pods = join(directory, 'pods')
  mkdirSync(pods)
  const following = await follow([at('*.log'), join(pods, '*.log')])
  writeFileSync(join(pods, '0.log'), 'one\n')
  symlinkSync(join(pods, '0.log'), at('web.log'))
  await arrives(following, ['one'])
  appendFileSync(join(pods, '0.log'), 'two\n')
  renameSync(join(pods, '0.log'), join(pods, '0.log.20260101-000000'))
  writeFileSync(join(pods, '0.log'), 'three\n')
  await arrives(following, ['one', 'two', 'three'])
  assert.equal(following.follower.state.files, 1)
})

test('rotated files that the pattern means as well are read once', async t => {
  const { log, at, follow } = workplace(t)
  writeFileSync(log, 'zero\n')
  const first = await follow([at('app.log*')], { startAt: 'beginning' })
  const lines = ['zero']
  for (let i = 0; i < 4; i++) {
    rotate(log)
    writeFileSync(log, `${i}\n`)
    lines.push(`${i}`)
    await arrives(first, lines)
  }
  writeFileSync(at('app.log.gz'), gzipSync('no\n'))
  await sleep(1500)
  assert.deepEqual(first.lines, lines)
  await first.stop()
  const second = await follow([at('app.log*')], { startAt: 'beginning' })
  appendFileSync(log, 'last\n')
  await arrives(second, ['last'])
})

test('more files than may be open are followed by turns', async t => {
  const { at, follow } = workplace(t)
  for (let i = 0; i < 40; i++) writeFileSync(at(`${i}.log`), '')
  const following = await follow([at('*.log')], { maxOpen: 10 })
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 40; i++) appendFileSync(at(`${i}.log`), `${i}\n`)
    await eventually(
      () => following.lines.length >= 40 * (round + 1),
      () => `only ${following.lines.length}`,
    )
  }
  assert.equal(following.lines.length, 120)
  assert.ok(following.follower.state.openFiles <= 10)
  assert.match(following.warnings.join(), /more than 10 log files grow/)
})

test('a file that a source does not want yet is taken when it does, from where it was found', async t => {
  const { log, follow } = workplace(t)
  writeFileSync(log, 'old\n')
  let isWanted = false
  const lines: string[] = []
  const source = plainSource([log], line => lines.push(line))
  await follow(undefined, {
    sources: [{ ...source, reader: file => (isWanted ? source.reader(file) : undefined) }],
  })
  isWanted = true
  await eventually(
    () => {
      appendFileSync(log, 'new\n')
      return lines.length > 0
    },
    () => 'it is never taken',
  )
  assert.ok(lines.every(line => line === 'new'))
})
