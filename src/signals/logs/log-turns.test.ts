import assert from 'node:assert/strict'
import {
  appendFileSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { Following, plainSource } from '../../../test/helpers/log-following.ts'
import { until } from '../../../test/helpers/program.ts'
import { FollowedLog } from './followed-log.ts'
import { LogTurns } from './log-turns.ts'

test('where less is read than is written, many large files of one user keep no other log waiting', {
  skip: withoutRoot,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-turns-'))
  const files = 60
  const linesOfFile = 2_000
  const page = Array.from({ length: linesOfFile }, (_, i) => `${i} of a neighbour\n`).join('')
  for (const name of ['a', 'b', 'own', 'pods']) mkdirSync(join(directory, name))
  for (let i = 0; i < files; i++) {
    const path = join(directory, i % 2 === 0 ? 'a' : 'b', `${i}.log`)
    writeFileSync(path, page)
    chownSync(path, 65_534, 65_534)
  }
  writeFileSync(join(directory, 'own', 'one.log'), 'own\n'.repeat(100))
  writeFileSync(join(directory, 'pods', 'one.log'), 'pod\n'.repeat(1_500))

  // What takes the lines has room for 1,000, and takes them as slowly as it likes.
  const taken: string[] = []
  let waiting = 0
  const source = plainSource([join(directory, '*/*.log')], line => {
    taken.push(line)
    waiting++
  })
  const following = await Following.start([], join(directory, 'positions'), {
    startAt: 'beginning',
    sources: [source],
    pressure: () => waiting / 1_000,
  })
  const drain = setInterval(() => {
    waiting = 0
  }, 5)
  t.after(async () => {
    clearInterval(drain)
    await following.stop()
    rmSync(directory, { recursive: true })
  })
  const all = files * linesOfFile + 1_600
  await until('all is read', 60_000, () => taken.length >= all)
  assert.equal(taken.length, all)
  assert.equal(taken.filter(line => line === 'own').length, 100)
  // Each has its turn of 4 chunks of 512 lines at most before the neighbour has two.
  assert.ok(taken.lastIndexOf('own') < 10_000, `own after ${taken.lastIndexOf('own')} lines`)
  assert.ok(taken.lastIndexOf('pod') < 10_000, `pod after ${taken.lastIndexOf('pod')} lines`)
})

test('in a round a log without data is asked once, however often others have more', () => {
  const turns = new LogTurns()
  const logOf = (path: string, owner: string) =>
    new FollowedLog({ path, owner, pattern: path, source: plainSource([path], () => undefined) })
  const quiet = [logOf('/a/1', 'a'), logOf('/a/2', 'a'), logOf('/b/1', 'b')]
  const busy = logOf('/b/2', 'b')
  const awake = new Set([...quiet, busy])
  const asked: string[] = []
  turns.begin(awake)
  for (let turn = 0; turn < 4; turn++) {
    for (const logs of turns.owners())
      for (let left = 2; left > 0 && logs.length > 0; left--) {
        asked.push(logs[0]!.path)
        if (logs[0] === busy) turns.read(busy, awake)
        else logs.shift()
      }
    turns.end()
  }
  assert.deepEqual(asked, ['/a/1', '/a/2', '/b/1', ...Array.from({ length: 7 }, () => '/b/2')])
  assert.equal(turns.isDone, false)
  turns.owners()[0]!.length = 0
  turns.end()
  assert.equal(turns.isDone, true)
})

/** Follows two empty logs of a new directory. */
async function followTwo(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-rests-'))
  const [one, two] = [join(directory, 'one.log'), join(directory, 'two.log')]
  writeFileSync(one, '')
  writeFileSync(two, '')
  const following = await Following.start([join(directory, '*.log')], join(directory, 'positions'))
  t.after(async () => {
    await following.stop()
    rmSync(directory, { recursive: true })
  })
  return { directory, one, two, following }
}

test('a log that rests goes on with what is written later, and with a line that is finished then', async t => {
  const { one, two, following } = await followTwo(t)
  appendFileSync(one, 'first\n')
  appendFileSync(two, 'begun ')
  await until('the first line', 20_000, () => following.lines.length === 1)
  await new Promise(resolve => setTimeout(resolve, 3500)) // longer than a log is read without data
  appendFileSync(one, 'second\n')
  appendFileSync(two, 'and finished\n')
  await until('both lines', 20_000, () => following.lines.length === 3)
  assert.deepEqual([...following.lines].sort(), ['begun and finished', 'first', 'second'])
})

test('a log that rests, and whose path then leads to the file of another log, is read to its end', async t => {
  const { directory, one, two, following } = await followTwo(t)
  appendFileSync(one, 'first\n')
  appendFileSync(two, 'other\n')
  await until('both logs', 20_000, () => following.lines.length === 2)
  await new Promise(resolve => setTimeout(resolve, 3500)) // longer than a log is read without data
  appendFileSync(one, 'last\n')
  renameSync(one, join(directory, 'one.old'))
  linkSync(two, one)
  await until('the last line', 20_000, () => following.lines.length === 3)
  await until('the file is closed', 20_000, () => following.follower.counts.openFiles === 1)
  assert.equal(following.lines[2], 'last')
})
