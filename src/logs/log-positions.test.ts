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

test('there is a bound, and what was seen last stays', t => {
  const positions = new LogPositions(place(t))
  const now = Date.now()
  for (let i = 0; i < 10_100; i++) positions.set(position(i, { path: `/${i}`, seenMs: now - 20_000 + i }))
  assert.equal(positions.size, 10_000)
  assert.equal(positions.at(1, 10_099)?.path, '/10099')
  assert.equal(positions.at(1, 99), undefined)
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
  const positions = new LogPositions(path, (message, mend) => warnings.push(`${message}; ${mend}`))
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
