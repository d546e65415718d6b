import assert from 'node:assert/strict'
import { closeSync, openSync, readdirSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import type { Answer, Request } from './messages.ts'
import { WorkerThread } from './worker-thread.ts'

const settings = { demangle: true, perfMap: false, debugDirs: [], cacheBytes: 1 << 20, cacheDir: '' }
const program = process.execPath
const file = { pid: process.pid, path: program, start: 0, end: 4096, offset: 0, dev: 0, inode: 0, unread: '' }

function open(patienceMs = 60_000) {
  const answers: Answer[] = []
  const told: string[] = []
  const worker = new WorkerThread({
    settings,
    answer: answer => answers.push(answer),
    ended: reason => told.push(`ended: ${reason}`),
    begun: () => told.push('begun'),
    restartMs: 50,
    patienceMs,
  })
  return { worker, answers, told }
}

function descriptors(): number {
  const { ino } = statSync(program)
  return readdirSync('/proc/self/fd').filter(fd => {
    try {
      return statSync(`/proc/self/fd/${fd}`).ino === ino
    } catch {
      return false // the one that the directory is read by
    }
  }).length
}

test('a file is handed over, and its descriptor closed when its table is made', async () => {
  const { worker, answers } = open()
  const before = descriptors()
  assert.ok(worker.sendFile({ ...file, id: 1 }, openSync(program, 'r')))
  worker.send({ kind: 'mark', mark: 7 })
  await until(
    () => 'a table',
    30_000,
    () => answers.length === 2,
  )
  const [table, mark] = answers
  assert.ok(table?.kind === 'table' && table.id === 1 && table.table !== undefined && table.runtime === 1)
  assert.ok(table.table.rows.length > 100_000)
  assert.ok(mark?.kind === 'mark' && mark.mark === 7 && mark.state.files === 1)
  await worker.close()
  assert.equal(descriptors(), before)
})

test('what kills it is told, and another one begins with nothing', async () => {
  const { worker, answers, told } = open()
  const before = descriptors()
  worker.send({ kind: 'runtime' } as unknown as Request)
  worker.sendFile({ ...file, id: 2 }, openSync(program, 'r'))
  await until(
    () => 'its end',
    30_000,
    () => told.length > 0,
  )
  assert.match(told[0]!, /^ended: Cannot read properties/)
  assert.equal(descriptors(), before)
  const fd = openSync('/dev/null', 'r')
  assert.equal(worker.sendFile({ ...file, id: 3 }, fd), false)
  assert.throws(() => closeSync(fd), { code: 'EBADF' })
  assert.equal(worker.send({ kind: 'mark', mark: 1 }), false)
  await until(
    () => 'another one',
    30_000,
    () => told.includes('begun'),
  )
  worker.send({ kind: 'mark', mark: 2 })
  await until(
    () => 'its answer',
    30_000,
    () => answers.length > 0,
  )
  assert.ok(answers[0]?.kind === 'mark' && answers[0].mark === 2 && answers[0].state.files === 0)
  assert.equal(worker.failures, 1)
  await worker.close()
  assert.equal(told.length, 2)
})

test('one that does not answer is ended, and another one begins', async () => {
  const { worker, told } = open(1)
  const before = descriptors()
  worker.sendFile({ ...file, id: 1 }, openSync(program, 'r'))
  await until(
    () => 'its end',
    30_000,
    () => {
      worker.watch()
      return told.length > 0
    },
  )
  assert.equal(told[0], 'ended: it did not respond')
  assert.equal(descriptors(), before)
  await until(
    () => 'another one',
    30_000,
    () => told.includes('begun'),
  )
  assert.equal(worker.stuck, undefined)
  await worker.close()
})

test('one that is busy is handed no more files', async () => {
  const { worker } = open()
  const before = descriptors()
  for (let mark = 1; mark <= 128; mark++) worker.send({ kind: 'mark', mark })
  assert.ok(worker.busy)
  assert.equal(worker.sendFile({ ...file, id: 1 }, openSync(program, 'r')), false)
  assert.equal(descriptors(), before)
  await until(
    () => 'its answers',
    30_000,
    () => !worker.busy,
  )
  await worker.close()
})
