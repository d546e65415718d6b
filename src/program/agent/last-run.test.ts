import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCauses } from '../../foundation/model/run-cause.ts'
import { judgeLastRun, type RunContext, type RunNotes, type SupervisorReport } from './last-run.ts'

const notes: RunNotes = {
  ...{ pid: 7, startTicks: 5, bootId: 'one', version: '0.1.0', startedMs: 1_000_000, seenMs: 1_090_000 },
  ...{ cgroup: '/svc', oomKills: 1, end: undefined, ends: {} },
}
const now: RunContext = {
  bootId: 'one',
  cgroup: '/svc',
  oomKills: 1,
  supervisor: undefined,
  fatal: undefined,
}

function said(result: string, code: string, status: string, atMs = 1_095_000): SupervisorReport {
  return { result, code, status, atMs }
}

function causeOf(of: Partial<RunNotes>, around: Partial<RunContext> = {}): string {
  const { ended, cause, reason } = judgeLastRun({ ...notes, ...of }, { ...now, ...around })
  return `${ended} ${cause}: ${reason}`
}

test('its own word counts before all others', () => {
  const end = { cause: 'stopped', detail: 'SIGTERM' } as const
  assert.equal(causeOf({ end }, { bootId: 'two' }), 'clean stopped: stopped on request (SIGTERM)')
})

test('another boot of the host is no fault of svc', () => {
  assert.match(
    causeOf({}, { bootId: 'two', supervisor: said('signal', 'killed', 'KILL') }),
    /^clean host_restarted/,
  )
})

test('what systemd says is the cause', () => {
  const by = (...word: [string, string, string]) => causeOf({}, { supervisor: said(...word) })
  assert.match(by('oom-kill', 'killed', 'KILL'), /^fault out_of_memory/)
  assert.match(by('watchdog', 'dumped', 'ABRT'), /^fault watchdog/)
  assert.match(by('timeout', 'killed', 'KILL'), /^fault stop_timeout/)
  assert.match(by('exit-code', 'exited', '1'), /^fault exit: exited unexpectedly \(status 1\)/)
  assert.match(by('signal', 'killed', 'KILL'), /^fault killed/)
  assert.match(by('core-dump', 'dumped', 'SEGV'), /^fault crash: crashed \(SIGSEGV\)/)
  assert.match(by('core-dump', 'dumped', 'ABRT'), /^fault crash: crashed \(SIGABRT\)/)
})

test('a runtime that reported a full heap had no memory left, whatever is said of its signal', () => {
  const supervisor = said('core-dump', 'dumped', 'ABRT')
  const fatal = { pid: 7, atMs: 1_094_000, isHeap: true }
  assert.equal(causeOf({}, { supervisor, fatal }), 'fault heap_limit: JavaScript heap full')
  assert.match(causeOf({}, { fatal }), /^fault heap_limit/)
  assert.match(causeOf({}, { supervisor, fatal: { ...fatal, isHeap: false } }), /^fault crash/)
  // Of another run.
  assert.match(causeOf({}, { supervisor, fatal: { ...fatal, pid: 8 } }), /^fault crash/)
  assert.match(causeOf({}, { supervisor, fatal: { ...fatal, atMs: 999_000 } }), /^fault crash/)
})

test('what systemd said of a run before is not of this one', () => {
  assert.match(causeOf({}, { supervisor: said('watchdog', 'dumped', 'ABRT', 999_000) }), /^fault unknown/)
})

test('a process that the kernel killed in the same control group was this one', () => {
  assert.match(
    causeOf({}, { oomKills: 2 }),
    /^fault out_of_memory: .* \(memory limit of control group \/svc\)/,
  )
  // Another group has counts of its own, and one that is not known has none.
  assert.match(causeOf({}, { cgroup: '/svc-2', oomKills: 2 }), /^fault unknown/)
  assert.match(causeOf({ oomKills: -1 }, { oomKills: 2 }), /^fault unknown/)
})

test('how long it ran is until it was last seen, and never less than nothing', () => {
  assert.equal(judgeLastRun(notes, now).uptimeSeconds, 90)
  assert.equal(judgeLastRun({ ...notes, seenMs: 0 }, now).uptimeSeconds, 0)
})

test('every cause has its sentence', () => {
  for (const cause of runCauses)
    assert.ok(
      judgeLastRun({ ...notes, end: { cause, detail: '' } }, now).reason.startsWith('it ') || cause,
      cause,
    )
})
