import { closeSync, openSync, readSync } from 'node:fs'
import { Turn } from '../../../foundation/lib/turn.ts'
import { numberAt } from './_small-file.ts'
import { collector, gauge, type Tree } from './collector.ts'

const threads = gauge('processes_threads', 'Threads that there are.')
const maxThreads = gauge('processes_max_threads', 'Most threads that there may be.', {
  otel: { name: 'system.process.limit', unit: '{thread}', kind: 'updowncounter' },
})
const states = gauge('processes_state', 'Processes by the state of their first thread.', {
  labels: ['state'],
  otel: {
    name: 'system.process.count',
    unit: '{process}',
    kind: 'updowncounter',
    attributes: { state: 'process.state' },
    // Other states, such as waiting for a disk, have no value in the conventions.
    values: { R: 'running', S: 'sleeping', T: 'stopped', Z: 'defunct' },
  },
})
const threadStates = gauge('processes_threads_state', 'Threads by their state.', { labels: ['thread_state'] })
const pids = gauge('processes_pids', 'Processes that there are.')
const maxProcesses = gauge('processes_max_processes', 'Highest process id.')

interface Counts {
  processes: number
  threads: number
  readonly byState: Map<string, number>
  readonly threadsByState: Map<string, number>
}

/** Processes and threads by state, from /proc/<pid> (proc_pid_stat(5)). */
export const processes = collector({
  name: 'processes',
  summary: 'Processes and threads by state',
  source: '/proc/<pid>/stat',
  enabledByDefault: false,
  metrics: [threads, maxThreads, states, threadStates, pids, maxProcesses],
  start: (_options, { host: { proc } }) => {
    let counts: Counts | undefined
    return {
      async wait(signal) {
        counts = await countAll(proc, signal)
      },
      collect(readings) {
        if (counts === undefined) return
        readings.set(threads, counts.threads)
        readings.set(maxThreads, numberAt(proc, 'sys/kernel/threads-max'))
        for (const [state, count] of counts.byState) readings.set(states, count, state)
        for (const [state, count] of counts.threadsByState) readings.set(threadStates, count, state)
        readings.set(pids, counts.processes)
        readings.set(maxProcesses, numberAt(proc, 'sys/kernel/pid_max'))
      },
    }
  },
})

async function countAll(proc: Tree, signal: AbortSignal): Promise<Counts> {
  const counts: Counts = { processes: 0, threads: 0, byState: new Map(), threadsByState: new Map() }
  const turn = new Turn(2)
  for (const pid of proc.list('')) {
    if (!isId(pid)) continue
    const first = statOf(proc, pid)
    if (first === undefined) continue
    counts.processes++
    counts.threads += first.threads
    add(counts.byState, first.state)
    for (const id of proc.list(`${pid}/task`)) {
      if (!isId(id)) continue
      const state = id === pid ? first.state : statOf(proc, `${pid}/task/${id}`)?.state
      if (state !== undefined) add(counts.threadsByState, state)
      await turn.rest()
      signal.throwIfAborted()
    }
    await turn.rest()
    signal.throwIfAborted()
  }
  return counts
}

function isId(name: string): boolean {
  return name.charCodeAt(0) <= 57 && /^\d+$/.test(name)
}

function add(to: Map<string, number>, state: string): void {
  to.set(state, (to.get(state) ?? 0) + 1)
}

/** Larger than the fields up to the number of threads. */
const buffer = Buffer.alloc(512)

/**
 * State and number of threads of a process; undefined if it has ended. Read here and not by the tree, which would keep
 * a file of each process open.
 */
function statOf(proc: Tree, directory: string): { state: string; threads: number } | undefined {
  const path = proc.at(`${directory}/stat`)
  let text: string
  try {
    const fd = openSync(path, 'r')
    try {
      text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw new Error(`cannot read ${path}: ${code}; check whether /proc is mounted with hidepid`, {
      cause: error,
    })
  }
  // The name before may contain brackets and spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 18)
  const state = fields[0]!
  const count = Number(fields[17])
  if (!/^[A-Za-z]$/.test(state) || !(count >= 0)) throw new Error(`cannot read ${path}: no state or threads`)
  return { state, threads: count }
}
