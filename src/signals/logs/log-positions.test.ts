import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { LogPositions, type Position } from './log-positions.ts'

function place(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-positions-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return join(directory, 'state', 'positions')
}

function position(inode: number, change: Partial<Position> = {}): Position {
  const now = Date.now()
  return {
    path: '/var/log/app.log',
    device: 1,
    inode,
    fingerprint: 'ab',
    fingerprintLength: 10,
    offset: 100,
    seenMs: now,
    currentMs: now,
    ...change,
  }
}

test('what was saved is there after a restart, in its order, for nobody else to read', async t => {
  const path = place(t)
  const first = new LogPositions(path)
  first.set(position(7))
  first.set(position(3, { offset: 5 }))
  first.set(position(9, { path: '/var/log/other.log' }))
  first.set(position(7, { offset: 200 }))
  first.setCursor('journal', 's=1')
  first.lookedMs = 1000
  await first.save()
  const second = new LogPositions(path)
  assert.deepEqual(
    second.ofPath('/var/log/app.log').map(({ inode, offset }) => [inode, offset]),
    [
      [7, 200],
      [3, 5],
    ],
  )
  assert.equal(second.at(1, 9)?.path, '/var/log/other.log')
  assert.equal(second.cursor('journal'), 's=1')
  assert.equal(second.lookedMs, 1000)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(path, '..')), ['positions'])
  second.forget(1, 7)
  assert.deepEqual(second.ofPath('/var/log/app.log').length, 1)
})

test('what has been gone for a day is forgotten', async t => {
  const path = place(t)
  const positions = new LogPositions(path)
  positions.set(position(1, { seenMs: Date.now() - 25 * 3600 * 1000 }))
  positions.set(position(2, { seenMs: Date.now() - 23 * 3600 * 1000 }))
  await positions.save()
  assert.deepEqual([positions.at(1, 1), positions.at(1, 2)?.inode], [undefined, 2])
})

test('there is a bound in bytes, who has most is forgotten first, and of that what was set first', async t => {
  const path = place(t)
  const positions = new LogPositions(path, undefined, 1024 * 1024)
  positions.set(position(1, { path: '/ann' }), 'user 1')
  for (let i = 10; i < 3_000; i++) {
    positions.set(position(i, { path: `/${i}` }), 'user 2')
    // Set again, without saying whose it is.
    positions.set(position(10, { path: '/10' }))
  }
  assert.ok(positions.bytes <= 1024 * 1024)
  assert.ok(positions.bytes > 900 * positions.size * 0.6 && positions.size > 1000, `${positions.size}`)
  for (const kept of [1, 10, 2_999]) assert.equal(positions.at(1, kept)?.inode, kept)
  assert.equal(positions.at(1, 11), undefined)
  assert.equal(positions.forgotten, 2_991 - positions.size)
  // Also after a restart.
  await positions.save()
  const second = new LogPositions(path, undefined, 1024 * 1024)
  assert.equal(second.size, positions.size)
  for (let i = 3_000; i < 4_000; i++) second.set(position(i, { path: `/${i}` }), 'user 2')
  assert.equal(second.at(1, 1)?.path, '/ann')
})

test('where memory is short, what nobody needs is forgotten', t => {
  const positions = new LogPositions(place(t))
  for (let i = 0; i < 100; i++) positions.set(position(i, { path: `/${i}` }), 'user 1')
  const before = positions.bytes
  assert.equal(
    positions.shed(before, ({ inode }) => inode >= 40),
    before - positions.bytes,
  )
  assert.equal(positions.size, 60)
  assert.equal(
    positions.shed(before, () => true),
    0,
  )
  assert.ok(positions.shed(1, () => false) < 1000)
  assert.equal(positions.size, 59)
  for (let i = 0; i < 100; i++) positions.forget(1, i)
  assert.equal(positions.bytes, 0)
})

test('a damaged file is as none, with a warning', t => {
  const path = place(t)
  mkdirSync(join(path, '..'))
  const check = (content: string, isTold: boolean) => {
    writeFileSync(path, content)
    const warnings: string[] = []
    const positions = new LogPositions(path, message => warnings.push(message))
    assert.equal(positions.size, 0, content)
    assert.equal(warnings.length > 0, isTold, content)
  }
  check('', true)
  check('{"version":1,"files":[', true)
  check('null', true)
  check('[]', true)
  check('{"version":2,"files":[]}', true)
  check('{"version":1,"files":[]}', false)
  check(
    '{"version":1,"files":[1,null,{},{"path":"x"},{"path":"/a","device":-1}],"cursors":[1],"lookedMs":"x"}',
    false,
  )
  fc.assert(
    fc.property(fc.json(), json => {
      writeFileSync(path, json)
      new LogPositions(path)
      writeFileSync(path, `{"version":1,"files":[${json}],"cursors":${json}}`)
      assert.equal(new LogPositions(path).size, 0)
    }),
  )
})

test('a place that cannot be written is told once, and work goes on', async t => {
  const path = place(t)
  writeFileSync(join(path, '..'), 'a file where a directory should be')
  const warnings: string[] = []
  const positions = new LogPositions(path, (message, hint) => warnings.push(`${message}; ${hint}`))
  positions.set(position(1))
  await positions.save()
  await positions.save()
  assert.equal(
    warnings.filter(text => /cannot write .*: .*; make its directory writable/.test(text)).length,
    1,
  )
  rmSync(join(path, '..'))
  await positions.save()
  assert.match(readFileSync(path, 'utf8'), /"inode":1,/)
})
