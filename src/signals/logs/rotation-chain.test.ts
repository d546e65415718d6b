import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Turn } from '../../foundation/lib/turn.ts'
import { LogFile, lineBuffer } from './log-file.ts'
import { LogPositions } from './log-positions.ts'
import { type RotationQuery, rotationChain } from './rotation-chain.ts'

interface Scene {
  readonly directory: string
  readonly question: RotationQuery
  readonly looks: () => number
}

/** A log of which the first file was read, and which was rotated since. `atLook`: what happens in the midst of a look. */
function scene(t: TestContext, atLook: (directory: string, look: number) => void, patience = 100): Scene {
  const directory = mkdtempSync(join(tmpdir(), 'svc-rotation-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const log = join(directory, 'app.log')
  const buffer = lineBuffer(1024)
  const positions = new LogPositions(join(directory, 'state'), assert.fail)
  writeFileSync(log, 'one\n')
  const first = new LogFile(log, statSync(log))
  first.currentMs = Date.now()
  assert.ok(first.open(buffer))
  positions.set(first.positionAt(log, 4))
  first.close()
  renameSync(log, join(directory, 'app.log.2'))
  writeFileSync(join(directory, 'app.log.1'), 'two\n')
  writeFileSync(log, 'three\n')
  const current = new LogFile(log, statSync(log))
  let looks = 0
  const question: RotationQuery = {
    path: log,
    current,
    last: undefined,
    known: positions.ofPath(log),
    isKnown: false,
    positions,
    buffer,
    turn: new Turn(1),
    isFollowed: () => false,
    isLog: () => false,
    // It is asked for the directory before each look and after it, and for each file in between.
    isHeld: (path, isBeside) => {
      if (path === directory && isBeside !== true) looks += 0.5
      else if (basename(path) === 'app.log.2') atLook(directory, Math.ceil(looks))
      return false
    },
    mayLookAgain: () => looks < patience,
  }
  return { directory, question, looks: () => looks }
}

async function names(question: RotationQuery): Promise<string[]> {
  const { before } = await rotationChain(question)
  for (const file of before) file.close()
  return before.map(({ name }) => basename(name))
}

test('a look in the midst of a rotation is repeated, and misses no file', async t => {
  const { directory, question } = scene(t, (directory, look) => {
    if (look === 1) renameSync(join(directory, 'between'), join(directory, 'app.log.1'))
  })
  // Renamed away, and not yet there by its next name.
  renameSync(join(directory, 'app.log.1'), join(directory, 'between'))
  assert.deepEqual(await names(question), ['app.log.2', 'app.log.1'])
})

const churn = (directory: string, look: number) =>
  writeFileSync(join(directory, `other-${look}-${performance.now()}`), '')

test('who never stops renaming is looked at a few times, and no more often than there is time for', async t => {
  const patient = scene(t, churn)
  assert.deepEqual(await names(patient.question), ['app.log.2', 'app.log.1'])
  assert.equal(patient.looks(), 6)
  const hurried = scene(t, churn, 1)
  assert.deepEqual(await names(hurried.question), ['app.log.2', 'app.log.1'])
  assert.equal(hurried.looks(), 1)
})

test('a file that follows the current one, which was renamed during the look, is not read before it', async t => {
  const { directory, question } = scene(t, () => undefined)
  for (const number of [2, 1])
    renameSync(join(directory, `app.log.${number}`), join(directory, `app.log.${number + 2}`))
  renameSync(join(directory, 'app.log'), join(directory, 'app.log.2'))
  writeFileSync(join(directory, 'app.log.1'), 'four\n')
  writeFileSync(join(directory, 'app.log'), 'five\n')
  assert.deepEqual(await names(question), ['app.log.4', 'app.log.3'])
})
