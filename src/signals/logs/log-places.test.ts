import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { Following } from '../../../test/helpers/log-following.ts'
import { until } from '../../../test/helpers/program.ts'
import { FileFinder } from './file-finder.ts'
import type { LogFollowerOptions } from './log-follower.ts'
import { LogPlaces } from './log-places.ts'

/** Directories of users below one that all may look at. */
function host(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'svc-places-'))
  const started: Following[] = []
  t.after(async () => {
    for (const following of started) await following.stop()
    rmSync(root, { recursive: true })
  })
  const logs = join(root, 'logs')
  mkdirSync(logs)
  return {
    log: (directory: string, name: string) => join(logs, directory, name),
    /** A directory of a user with so many files. */
    fill(directory: string, user: number, files: number, text = '') {
      const path = join(logs, directory)
      mkdirSync(path, { recursive: true })
      chownSync(path, user, user)
      for (let i = 0; i < files; i++) {
        writeFileSync(join(path, `${i}.log`), text)
        chownSync(join(path, `${i}.log`), user, user)
      }
    },
    async follow(options: Partial<LogFollowerOptions>) {
      const following = await Following.start([join(logs, '*/*.log')], join(root, 'positions'), options)
      started.push(following)
      return following
    },
    find: async (finder: FileFinder, anew = false) => {
      const found = await finder.find([join(logs, '*/*.log')], anew)
      return found.map(({ path }) => path.slice(logs.length + 1))
    },
  }
}

const [ann, ben, eve] = [10_001, 10_002, 10_003]

test('files of another user take no place of a log that is followed, and none of a new one', {
  skip: withoutRoot,
}, async t => {
  const { fill, log, follow } = host(t)
  fill('zoe', ann, 1)
  const following = await follow({ maxFiles: 20 })
  // Before it in every order of names, and in the order in which they were made behind it.
  for (const directory of ['a', 'm', 'zz']) fill(directory, eve, 60)
  await until('the places are taken', 10_000, () => following.follower.state.leftOut.files > 0)
  assert.equal(following.follower.state.files, 20)
  appendFileSync(log('zoe', '0.log'), 'one of ann\n')
  fill('ben', ben, 1, 'one of ben\n')
  await until('both are read', 10_000, () => following.lines.length === 2)
  // Two looks later as well.
  const { losses, leftOut } = following.follower.state
  assert.deepEqual(losses, { refused: 162, taken: 1 })
  assert.deepEqual(leftOut, { files: 162, directories: 0 })
  fill('zoe', ann, 3, 'new of ann\n')
  await until('new ones are read', 10_000, () => following.lines.length >= 4)
  appendFileSync(log('ben', '0.log'), 'two of ben\n')
  await until('those that had a place have it', 10_000, () => following.lines.includes('two of ben'))
  assert.equal(following.follower.state.files, 20)
  assert.match(following.warnings.join(), /owners with the most (files first|are left out first)/)
})

test('a log is followed as long as a pattern means it, also where looks are cut short', {
  skip: withoutRoot,
}, async t => {
  const { fill, log, follow } = host(t)
  // Files of one owner, of which a look finds others than those that are followed.
  fill('own', ann, 5)
  const following = await follow({ maxFiles: 5 })
  fill('own', ann, 60)
  await until('a look is cut short', 10_000, () => following.follower.state.leftOut.files > 0)
  const before = performance.now()
  await until('three more looks', 10_000, () => performance.now() - before > 3_500)
  for (let i = 0; i < 5; i++) appendFileSync(log('own', `${i}.log`), `${i}\n`)
  await until('all are read', 10_000, () => following.lines.length === 5)
  assert.deepEqual(following.lines.sort(), ['0', '1', '2', '3', '4'])
})

test('directories that are full of names of one user hide no log of another', {
  skip: withoutRoot,
}, async t => {
  const { fill, find, log } = host(t)
  fill('a', eve, 1_201)
  fill('zz', eve, 1_201)
  const finder = new FileFinder({ entries: 1_200, files: 100 })
  assert.equal((await find(finder)).length, 100)
  assert.equal(finder.leftOut.directories, 2)
  for (const [directory, user] of [
    ['0', ann],
    ['m', ben],
    ['zzz', ann],
  ] as const)
    fill(directory, user, 3)
  // Also where the others change always.
  for (let look = 0; look < 4; look++) {
    utimesSync(log('a', '.'), new Date(), new Date())
    const found = await find(finder, look === 2)
    assert.equal(found.length, 100)
    assert.equal(found.filter(path => /^(?:0|m|zzz)\//.test(path)).length, 9, `look ${look}`)
    assert.ok(finder.leftOut.directories > 0)
  }
  // What is remembered is bounded, and goes where memory is short.
  assert.ok(finder.bytes > 10_000 && finder.bytes < 1_200 * 100, `${finder.bytes} bytes`)
  const freed = finder.shed(1)
  assert.ok(freed > 10_000, `${freed} bytes of who has most`)
  finder.shed(Number.POSITIVE_INFINITY)
  assert.equal(finder.bytes, 0)
  assert.equal((await find(finder)).filter(path => /^(?:0|m|zzz)\//.test(path)).length, 9)
})

test('what a user has below directories is that user’s, whoever owns the files', {
  skip: withoutRoot,
}, async t => {
  const { fill, find, log } = host(t)
  fill('eve', eve, 50)
  // As a container of hers may, whose users are users of the host's too.
  for (let i = 0; i < 50; i++) chownSync(log('eve', `${i}.log`), 100_000 + i, 100_000 + i)
  fill('zoe', ann, 4)
  const finder = new FileFinder({ files: 10 })
  const found = await find(finder)
  assert.equal(found.filter(path => path.startsWith('zoe/')).length, 4)
  assert.equal(found.length, 10)
  assert.deepEqual(finder.leftOut, { files: 44, directories: 0 })
})

test('files that wait for their turn are bounded, and who has most of them gives some up', {
  skip: withoutRoot,
}, async t => {
  const { fill, log, follow } = host(t)
  fill('ann', ann, 1, 'ann 0\n')
  fill('eve', eve, 2, 'eve\n')
  const following = await follow({ maxFiles: 10, maxOpen: 8, startAt: 'beginning' })
  await until('all are read', 10_000, () => following.lines.length === 3)
  // Nothing is read while both rotate their logs.
  following.pressure = 1
  await until('it is paused', 10_000, () => following.follower.state.isPaused)
  for (let round = 1; round <= 4; round++) {
    const rotate = (directory: string, name: string, user: number, times: number) => {
      for (let i = 0; i < times; i++) {
        const path = log(directory, name)
        renameSync(path, `${path}.${round * 100 - i}`)
        writeFileSync(path, `${directory} ${round}\n`)
        chownSync(path, user, user)
      }
    }
    rotate('ann', '0.log', ann, 1)
    rotate('eve', '0.log', eve, 10)
    rotate('eve', '1.log', eve, 10)
    const before = performance.now()
    await until('another look', 10_000, () => performance.now() - before > 1_200)
    assert.ok(following.follower.state.openFiles <= 8, `${following.follower.state.openFiles} open`)
  }
  assert.ok(following.follower.state.lostRotations > 20, `${following.follower.state.lostRotations}`)
  following.pressure = 0
  const own = () => following.lines.filter(line => line.startsWith('ann'))
  await until('all of the other is read', 10_000, () => own().length === 5)
  assert.deepEqual(own(), ['ann 0', 'ann 1', 'ann 2', 'ann 3', 'ann 4'])
})

/** A directory to which all may write, as of mode 1777. */
function shared(at: ReturnType<typeof host>) {
  const directory = at.log('shared', '.')
  mkdirSync(directory)
  chmodSync(directory, 0o1777)
  return {
    path: (name: string) => at.log('shared', name),
    write(name: string, user: number, text: string) {
      appendFileSync(at.log('shared', name), text)
      chownSync(at.log('shared', name), user, user)
    },
  }
}

test('links of another user, made before a log is, keep no line of it away', {
  skip: withoutRoot,
}, async t => {
  const at = host(t)
  const { path, write } = shared(at)
  for (let i = 0; i < 20; i++) {
    symlinkSync('app.log', path(`s${i}x.log`))
    lchownSync(path(`s${i}x.log`), eve, eve)
  }
  const following = await at.follow({})
  const lines = Array.from({ length: 12 }, (_, i) => `${i}`)
  for (const line of lines) write('app.log', ann, `${line}\n`)
  await until('all are read', 10_000, () => following.lines.length === 12)
  assert.deepEqual(following.lines, lines)
  assert.deepEqual([...new Set(following.files.map(each => each.path))], [path('app.log')])
})

test('files of another user that are named as rotated ones are no part of a log', {
  skip: withoutRoot,
}, async t => {
  const at = host(t)
  const { path, write } = shared(at)
  write('app.log', ann, 'one\n')
  write('root.log', 0, 'root one\n')
  let following = await at.follow({ startAt: 'beginning' })
  await until('the first are read', 10_000, () => following.lines.length === 2)
  write('app.log', ann, 'two\n')
  renameSync(path('app.log'), path('app.log.1'))
  write('app.log.2', eve, 'not of ann\nnor this')
  write('app.log.0.gz', eve, 'nor packed')
  write('app.log', ann, 'three\n')
  const before = performance.now()
  while (following.lines.length < 4 && performance.now() - before < 10_000) {
    write('app.log.2', eve, '.')
    await sleep(200)
  }
  const lines = () => following.lines.filter(line => !line.startsWith('root'))
  assert.deepEqual(lines(), ['one', 'two', 'three'])
  assert.equal(following.follower.state.lostRotations, 0)
  await following.stop()
  // While nobody looks: root's own, and what of ann's is left with nothing at its path.
  renameSync(path('root.log'), path('root.log.1'))
  write('root.log.1', 0, 'root two\n')
  write('root.log', ann, 'root three\n')
  write('app.log', ann, 'four\n')
  renameSync(path('app.log'), path('app.log.3'))
  write('app.log.2', eve, '\nnewest\n')
  following = await at.follow({ startAt: 'beginning' })
  await until('what is left is read', 10_000, () => following.lines.length >= 3)
  await sleep(1500)
  assert.deepEqual(following.lines.sort(), ['four', 'root three', 'root two'])
})

test('the rest of a line is waited for some seconds, however slowly it comes', async t => {
  const at = host(t)
  const { path, write } = shared(at)
  const own = process.getuid!()
  write('app.log', own, '')
  const following = await at.follow({})
  write('app.log', own, 'one\nbegun')
  await until('the first is read', 10_000, () => following.lines.length === 1)
  renameSync(path('app.log'), path('app.log.1'))
  write('app.log', own, 'two\n')
  const before = performance.now()
  while (!following.lines.includes('two') && performance.now() - before < 15_000) {
    write('app.log.1', own, '.')
    await sleep(500)
  }
  const tookMs = performance.now() - before
  assert.ok(tookMs > 3000 && tookMs < 10_000, `${tookMs} ms`)
  assert.match(following.lines[1]!, /^begun\.+$/)
  assert.deepEqual([following.lines[0], following.lines[2]], ['one', 'two'])
})

test('scans wait for directories to settle a limited number of times in all, and less for one owner', () => {
  const places = new LogPlaces(10)
  const pauses = (owner: string) => {
    let times = 0
    while (times < 100 && places.mayPause(owner)) times++
    return times
  }
  assert.deepEqual(['a', 'a', 'b', 'c', 'd', 'e'].map(pauses), [6, 0, 6, 6, 6, 0])
  places.leftOut(0)
  assert.deepEqual(['e', 'a'].map(pauses), [6, 6])
})
