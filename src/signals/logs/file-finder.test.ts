import assert from 'node:assert/strict'
import {
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { FileFinder, type FinderLimits } from './file-finder.ts'

function tree(t: TestContext, files: readonly string[], limits: Partial<FinderLimits> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'svc-finder-'))
  t.after(() => rmSync(root, { recursive: true }))
  const at = (path: string) => join(root, path)
  for (const file of files) {
    mkdirSync(join(at(file), '..'), { recursive: true })
    writeFileSync(at(file), '')
  }
  const finder = new FileFinder(limits)
  const find = async (patterns: readonly string[], anew = false) => {
    const found = await finder.find(patterns.map(at), anew)
    return found.map(({ path }) => path.slice(root.length + 1)).sort()
  }
  return { at, finder, find }
}

test('files are found below any number of directories', async t => {
  const { find } = tree(t, ['a.log', 'b.txt', 'x/a.log', 'x/y/a.log', 'x/y/.git/a.log', 'z/y/b.log'])
  assert.deepEqual(await find(['*.log']), ['a.log'])
  assert.deepEqual(await find(['*/*/*.log']), ['x/y/a.log', 'z/y/b.log'])
  assert.deepEqual(await find(['**/*.log']), ['a.log', 'x/a.log', 'x/y/a.log', 'z/y/b.log'])
  assert.deepEqual(await find(['x/**']), ['x/a.log', 'x/y/a.log'])
  assert.deepEqual(await find(['x/a.log', 'none/a.log', '{b,c}.txt']), ['b.txt', 'x/a.log'])
})

test('links are followed to files, in no circle, and a file comes once', async t => {
  const { at, find } = tree(t, ['pods/a/0.log', 'other.log'])
  mkdirSync(at('containers'))
  symlinkSync(at('pods/a/0.log'), at('containers/a.log'))
  symlinkSync(at('nowhere'), at('containers/b.log'))
  symlinkSync(at('pods'), at('pods/again'))
  symlinkSync(at('pods/loop'), at('pods/loop'))
  linkSync(at('other.log'), at('same.log'))
  assert.deepEqual(await find(['containers/*.log']), ['containers/a.log'])
  assert.deepEqual(await find(['containers/*.log', 'pods/**/*.log']), ['pods/a/0.log'])
  assert.deepEqual(await find(['pods/*/*.log']), ['pods/a/0.log'])
  assert.equal((await find(['*.log'])).length, 1)
})

test('a file comes by its own path, however many links to it were met before', async t => {
  const { at, find } = tree(t, ['d/app.log', 'ann/logs/x.log', 'zoe/logs/y.log'])
  for (let i = 0; i < 20; i++) symlinkSync('app.log', at(`d/s${i}x.log`))
  const links = Array.from({ length: 20 }, (_, i) => `d/s${i}x.log`)
  assert.deepEqual(await find([...links, 'd/app.log']), ['d/app.log'])
  assert.deepEqual(await find(['d/app.log', ...links]), ['d/app.log'])
  assert.deepEqual(await find(['d/*.log']), ['d/app.log'])
  // Through a link to a directory.
  mkdirSync(at('eve'))
  symlinkSync('../ann/logs', at('eve/logs'))
  for (const order of [
    ['eve/logs/x.log', 'ann/logs/x.log'],
    ['ann/logs/x.log', 'eve/logs/x.log'],
    ['*/logs/x.log'],
  ])
    assert.deepEqual(await find(order), ['ann/logs/x.log'])
})

test('a file in a directory of its owner comes by that, and counts to its owner', {
  skip: withoutRoot,
}, async t => {
  const { at, finder } = tree(t, ['ann/a.log', 'ann/b.log', 'ann/c.log'], { files: 4 })
  mkdirSync(at('eve'))
  for (const name of ['', 'a.log', 'b.log', 'c.log']) chownSync(at(`ann/${name}`), 10_001, 10_001)
  chownSync(at('eve'), 10_002, 10_002)
  linkSync(at('ann/a.log'), at('eve/a.log'))
  for (const name of ['b.log', 'c.log']) symlinkSync(at(`ann/${name}`), at(`eve/${name}`))
  for (const name of ['d.log', 'e.log']) {
    writeFileSync(at(`eve/${name}`), '')
    chownSync(at(`eve/${name}`), 10_002, 10_002)
  }
  for (let look = 0; look < 2; look++) {
    // Those of ann take no room of eve's: of who has most, which is ann, one is left out.
    const found = await finder.find([at('eve/[a-c].log'), at('ann/*.log'), at('eve/[de].log')])
    const told = found.map(({ path, owner }) => `${path.slice(at('.').length + 1)} ${owner}`).sort()
    assert.equal(told.filter(each => /^ann\/[abc]\.log user 10001$/.test(each)).length, 2, told.join())
    assert.deepEqual(told.slice(2), ['eve/d.log user 10002', 'eve/e.log user 10002'])
    assert.equal(finder.leftOut.files, 1)
  }
})

test('what is held is neither looked at nor listed, and is found once it is not', async t => {
  const { at } = tree(t, ['x/a.log', 'x/y/a.log', 'z/a.log', 'z/b.log', 'z/users.log'])
  symlinkSync(at('x/a.log'), at('z/link.log'))
  const held = new Set([
    at('x'),
    at('x/a.log'),
    at('x/y'),
    at('x/y/a.log'),
    at('z/link.log'),
    at('z/users.log'),
  ])
  const beside: string[] = []
  const finder = new FileFinder({}, (path, isBeside) => {
    if (isBeside) beside.push(path)
    return held.has(path)
  })
  const find = async (...patterns: string[]) =>
    (await finder.find(patterns.map(at))).map(({ path }) => path).sort()
  const near = [at('z/a.log'), at('z/b.log')]
  assert.deepEqual(await find('*/*.log', '**/*.log', 'x/a.log', 'x/*/a.log', '*/users.log'), near)
  assert.deepEqual([...new Set(beside)].sort(), [...near, at('z/users.log')])
  held.clear()
  assert.equal((await find('*/*.log')).length, 4)
  assert.equal((await find('x/**/*.log')).length, 2)
})

test('what is new or gone is seen at the next look', async t => {
  const { at, find } = tree(t, ['x/a.log'])
  assert.deepEqual(await find(['*/*.log']), ['x/a.log'])
  writeFileSync(at('x/b.log'), '')
  assert.deepEqual(await find(['*/*.log']), ['x/a.log', 'x/b.log'])
  unlinkSync(at('x/a.log'))
  mkdirSync(at('y'))
  writeFileSync(at('y/c.log'), '')
  assert.deepEqual(await find(['*/*.log']), ['x/b.log', 'y/c.log'])
  assert.deepEqual(await find(['*/*.log'], true), ['x/b.log', 'y/c.log'])
})

test('a walk is bounded, and says what it left out', async t => {
  const names = Array.from({ length: 50 }, (_, i) => `d/${i}.log`)
  const deep = `${'x/'.repeat(10)}a.log`
  const check = async (limits: Partial<FinderLimits>, pattern: string, most: number, over: RegExp) => {
    const { find, finder } = tree(t, [...names, deep], limits)
    for (let look = 0; look < 3; look++) {
      assert.ok((await find([pattern])).length <= most)
      assert.match(finder.over, over)
    }
  }
  await check({ files: 10 }, 'd/*', 10, /files over the limit of 10/)
  await check({ entries: 20 }, 'd/*', 20, /directory entries over the limit of 20/)
  await check({ depth: 3 }, '**/a.log', 0, /directories below /)
  await check({}, '**/*.log', 51, /^$/)
})

test('a pattern that cannot be read is told, and the others are looked for', async t => {
  const { finder, at } = tree(t, ['a.log'])
  assert.equal((await finder.find(['a.log', at('a.log')])).length, 1)
  assert.match(finder.faults.get('a.log') ?? '', /does not start/)
})
