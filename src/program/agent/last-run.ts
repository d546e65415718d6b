// What ended the previous run, from its notes, its supervisor and the kernel.

import type { RunCause } from '../../foundation/model/run-cause.ts'
import type { FatalReport } from './fatal-report.ts'

/** Notes of a run about itself. */
export interface RunNotes {
  readonly pid: number
  /** Start time of the process, in clock ticks since boot (proc_pid_stat(5)), because PIDs are reused. */
  readonly startTicks: number
  readonly bootId: string
  readonly version: string
  /** Milliseconds since the Unix epoch. */
  readonly startedMs: number
  /** When it was last known to run. */
  readonly seenMs: number
  /** Its control group, and the number of processes killed there by the OOM killer; -1: unknown. */
  readonly cgroup: string
  readonly oomKills: number
  /** Its own report, if it could write one. */
  readonly end: { readonly cause: RunCause; readonly detail: string } | undefined
  /** Number of earlier runs by cause of their end. */
  readonly ends: Readonly<Partial<Record<RunCause, number>>>
}

/** What systemd passes to ExecStopPost= (systemd.exec(5)): `$SERVICE_RESULT`, `$EXIT_CODE` and `$EXIT_STATUS`. */
export interface SupervisorReport {
  readonly result: string
  readonly code: string
  readonly status: string
  readonly atMs: number
}

/** The current state. */
export interface RunContext {
  readonly bootId: string
  readonly cgroup: string
  readonly oomKills: number
  readonly supervisor: SupervisorReport | undefined
  readonly fatal: FatalReport | undefined
}

/** For documents. */
export interface LastRun {
  readonly ended: 'clean' | 'fault'
  readonly cause: RunCause
  /** A sentence without its full stop. */
  readonly reason: string
  readonly hint: string
  readonly version: string
  /** Milliseconds since the Unix epoch: when it ended, or was last known to run. */
  readonly atMs: number
  readonly uptimeSeconds: number
}

/** File times come from a clock that lags a little. */
const clockMs = 100

interface CauseText {
  readonly reason: string
  readonly hint: string
}

const memoryHint =
  'raise limits.memory and the memory limit of the service or container; svc status shows the memory usage'
export const reportHint = 'please report this, with the log of the minutes before: journalctl -u svc'
const causes: Readonly<Record<RunCause, CauseText>> = {
  stopped: { reason: 'stopped on request', hint: '' },
  host_restarted: { reason: 'the host was restarted, lost power, or is a different host now', hint: '' },
  start_failed: { reason: 'failed to start', hint: 'run svc doctor' },
  bug: { reason: 'uncaught error', hint: reportHint },
  stopped_at_once: { reason: 'stopped by a second signal before all data was delivered', hint: '' },
  stop_timeout: {
    reason: 'shutdown timed out',
    hint: 'raise pipeline.operations.shutdown.timeout, and run svc doctor export',
  },
  heap_limit: { reason: 'JavaScript heap full', hint: memoryHint },
  out_of_memory: { reason: 'killed by the kernel: out of memory', hint: memoryHint },
  watchdog: { reason: 'watchdog timeout: no response to the supervisor', hint: reportHint },
  killed: {
    reason: 'killed by SIGKILL',
    hint: 'the kernel also does this when the host is out of memory: journalctl -k',
  },
  crash: { reason: 'crashed', hint: reportHint },
  exit: { reason: 'exited unexpectedly', hint: reportHint },
  unknown: {
    reason: 'unknown cause',
    hint: 'the supervisor may have the cause: journalctl -u svc, docker inspect, kubectl describe pod',
  },
}

/** What ended the run that left these notes. */
export function judgeLastRun(notes: RunNotes, now: RunContext): LastRun {
  const { cause, detail } = notes.end ?? unsaid(notes, now)
  const { reason, hint } = causes[cause]
  return {
    ended: cause === 'stopped' || cause === 'host_restarted' ? 'clean' : 'fault',
    cause,
    reason: detail === '' ? reason : `${reason} (${detail})`,
    hint,
    version: notes.version,
    atMs: notes.seenMs,
    uptimeSeconds: Math.max(0, Math.round((notes.seenMs - notes.startedMs) / 1000)),
  }
}

interface Cause {
  readonly cause: RunCause
  readonly detail: string
}

/** The cause of an end without a report. */
function unsaid(notes: RunNotes, now: RunContext): Cause {
  if (now.bootId !== '' && now.bootId !== notes.bootId) return { cause: 'host_restarted', detail: '' }
  const { fatal, supervisor: said } = now
  if (fatal?.isHeap && fatal.pid === notes.pid && fatal.atMs >= notes.startedMs)
    return { cause: 'heap_limit', detail: '' }
  if (said !== undefined && said.atMs >= notes.startedMs - clockMs) return bySupervisor(said)
  // A recreated group counts from 0.
  if (now.cgroup === notes.cgroup && notes.oomKills >= 0 && now.oomKills > notes.oomKills)
    return { cause: 'out_of_memory', detail: `memory limit of control group ${notes.cgroup}` }
  return { cause: 'unknown', detail: '' }
}

function bySupervisor({ result, code, status }: SupervisorReport): Cause {
  if (result === 'oom-kill') return { cause: 'out_of_memory', detail: '' }
  if (result === 'watchdog') return { cause: 'watchdog', detail: '' }
  if (result === 'timeout') return { cause: 'stop_timeout', detail: '' }
  if (code === 'exited') return { cause: 'exit', detail: `status ${status}` }
  if (status === 'KILL') return { cause: 'killed', detail: '' }
  return { cause: 'crash', detail: `SIG${status}` }
}
