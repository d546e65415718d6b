import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { RunRecord } from './run-record.ts'

function place(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-record-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const said: string[] = []
  const say = (text: string) => said.push(text)
  const path = join(directory, 'run.json')
  return {
    directory,
    path,
    said,
    next: () => new RunRecord(directory, { warn: say }),
    /** As if another process had written it. */
    change: (to: object) =>
      writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...to })),
  }
}

test('the first run knows of none before, and a run that was asked to stop is no fault', t => {
  const { next, said } = place(t)
  const first = next()
  assert.deepEqual([first.last, first.ends], [undefined, {}])
  first.end('stopped', 'SIGTERM')
  // Only the first word counts.
  first.end('bug')
  const second = next()
  second.end('stopped')
  assert.deepEqual([second.last?.cause, second.ends], ['stopped', { stopped: 1 }])
  assert.deepEqual(said, [])
})

test('a run that said nothing ended by a fault, and faults are added up', t => {
  const { next, change, said } = place(t)
  next()
  for (const runs of [1, 2]) {
    change({ startTicks: 1 })
    const after = next()
    assert.deepEqual([after.last?.cause, after.ends], ['unknown', { unknown: runs }])
  }
  assert.deepEqual(said, Array(2).fill('last run ended abnormally: unknown cause'))
  change({ startTicks: 1, bootId: 'another' })
  assert.equal(next().last?.cause, 'host_restarted')
})

test('the word of systemd counts where it came after the start', t => {
  const { directory, next, change } = place(t)
  next()
  change({ startTicks: 1 })
  writeFileSync(join(directory, 'ended'), 'watchdog dumped ABRT\n')
  assert.equal(next().last?.cause, 'watchdog')
  change({ startTicks: 1 })
  utimesSync(join(directory, 'ended'), 1, 1)
  assert.equal(next().last?.cause, 'unknown')
})

test('what the runtime reported of its end counts, once', t => {
  const { directory, next, change } = place(t)
  const report = (event: string, pid: number = process.pid) =>
    writeFileSync(
      join(directory, 'fatal.json'),
      JSON.stringify(
        {
          header: {
            event,
            trigger: 'OOMError',
            dumpEventTimeStamp: `${Date.now()}`,
            processId: pid,
            cpus: [],
          },
        },
        undefined,
        2,
      ),
    )
  next()
  for (const [event, cause] of [
    ['Allocation failed - JavaScript heap out of memory', 'heap_limit'],
    ['Allocation failed - process out of memory', 'unknown'],
  ] as const) {
    change({ startTicks: 1 })
    report(event)
    assert.equal(next().last?.cause, cause)
    assert.equal(existsSync(join(directory, 'fatal.json')), false)
  }
  change({ startTicks: 1 })
  assert.equal(next().last?.cause, 'unknown')
})

test('two agents with one directory: the second leaves the notes alone, and says so', t => {
  const { next, path, said } = place(t)
  next()
  const before = readFileSync(path, 'utf8')
  const second = next()
  second.end('stopped')
  assert.equal(readFileSync(path, 'utf8'), before)
  assert.equal(second.last, undefined)
  assert.match(said.join(), /another svc uses the same directory/)
})

test('whatever lies there, the agent starts', t => {
  const { directory, next, path } = place(t)
  const any = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.json(),
    fc
      .record({ pid: fc.oneof(fc.nat(), fc.jsonValue()), startedMs: fc.oneof(fc.double(), fc.jsonValue()) })
      .chain(some =>
        fc
          .record({
            seenMs: fc.jsonValue(),
            ends: fc.jsonValue(),
            end: fc.jsonValue(),
            version: fc.jsonValue(),
          })
          .map(more => JSON.stringify({ ...some, ...more })),
      ),
  )
  fc.assert(
    fc.property(any, any, any, (notes, ended, fatal) => {
      writeFileSync(path, notes)
      writeFileSync(join(directory, 'fatal.json'), fatal)
      writeFileSync(join(directory, 'ended'), ended)
      const record = next()
      if (record.last !== undefined) new Date(record.last.atMs).toISOString()
      for (const runs of Object.values(record.ends)) assert.ok(Number.isSafeInteger(runs) && runs >= 0)
      record.end('stopped')
    }),
    { examples: [['{"pid":1,"startedMs":1,"seenMs":-8640000000000001}', '', '']] },
  )
})

test('no directory, a link, a pipe or a directory in the place of the notes end nothing', t => {
  const { directory, next, path } = place(t)
  writeFileSync(join(directory, 'other'), '{"pid":1,"startedMs":5}')
  symlinkSync('other', path)
  assert.equal(next().last, undefined)
  rmSync(path)
  mkdirSync(path)
  assert.equal(next().last, undefined)
  const said: string[] = []
  new RunRecord('/proc/none', { warn: text => said.push(text) }).end('stopped')
  assert.match(said.join(), /^cannot write the run record; the next run will not know/)
  chmodSync(directory, 0o777)
  const open = next()
  open.end('stopped')
  assert.equal(open.last, undefined)
})
