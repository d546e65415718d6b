// Why a process is observed or not.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { listenersAt } from '../../identity/entities/listening-ports.ts'
import type { ProcessView } from '../../identity/entities/process-table.ts'
import type { ProcessesDocument } from '../../view/api/types.ts'
import { traces, whyOff } from '../agent/kernel-parts.ts'
import { Tracing } from '../agent/tracing.ts'
import type { Subsystems } from '../subsystems/by-name.ts'

const procDir = '/proc'
/** Maximum number of processes in an unfiltered answer: each requires reading its files. */
const maxProcesses = 100

/** Yields after each process, which takes a millisecond or two. */
export async function explain(parts: Subsystems, pid: number, port: number): Promise<ProcessesDocument> {
  const pids =
    port === 0 ? [pid] : (await listenersAt(procDir, port)).filter(each => pid === 0 || each === pid)
  if (pid === 0 && port === 0) pids.splice(0, 1, ...parts.processes.pids(maxProcesses))
  const processes: ProcessesDocument['processes'][number][] = []
  for (const each of pids) {
    const view = await parts.processes.explain(each)
    if (view !== undefined) processes.push(described(parts, view))
    await nextTurn()
  }
  return { processes }
}

function described(parts: Subsystems, view: ProcessView): ProcessesDocument['processes'][number] {
  const { pid, name, executable, listening, served, seen, startedUs, podName } = view
  const { observed, reason } = verdict(parts, view)
  return {
    pid,
    service: name,
    executable,
    listening_ports: [...listening],
    served_ports: [...served],
    has_calls: seen,
    observed,
    reason,
    notes: observed ? notesOf(parts, view) : [],
    command_line: view.commandLine,
    owner: view.owner,
    started: startedUs === 0 ? null : new Date(startedUs / 1000).toISOString(),
    runtime: `${view.runtime} ${view.runtimeVersion}`.trim(),
    container: view.containerId,
    container_name: view.containerName,
    pod: podName === '' ? '' : `${view.podNamespace}/${podName}`,
  }
}

function verdict({ tracing, loaded }: Subsystems, view: ProcessView): { observed: boolean; reason: string } {
  if (view.pid === process.pid) return { observed: false, reason: 'the agent never traces itself' }
  if (!(tracing instanceof Tracing)) {
    const why = tracing?.reason ?? whyOff(traces, loaded().config)?.detail
    return { observed: false, reason: `tracing is not running: ${why}` }
  }
  const { include_ports, exclude_ports } = loaded().config.agent.ebpf.network
  const open = view.listening.filter(
    port => !exclude_ports.includes(port) && (include_ports.length === 0 || include_ports.includes(port)),
  )
  const { selection } = view
  if (selection.observed && view.listening.length > 0 && open.length === 0 && !view.seen)
    return {
      observed: false,
      reason: 'its ports are excluded by agent.ebpf.network.include_ports or exclude_ports',
    }
  return { observed: selection.observed, reason: selectionText(selection) }
}

/** Why a process is selected for observation or not. */
export function selectionText(selection: ProcessView['selection']): string {
  switch (selection.cause) {
    case 'no_rules':
      return 'every process is observed'
    case 'no_entry':
      return 'no entry of discovery.instrument matches'
    case 'instrumented':
      return 'it exports its own spans; svc reports only its metrics'
    default:
      return `discovery.${selection.cause}[${selection.entry}] matches`
  }
}

function notesOf({ tracing }: Subsystems, view: ProcessView): string[] {
  const notes: string[] = []
  if (!view.seen)
    notes.push(
      'no call of a known protocol yet; calls to databases, caches, brokers and resolvers are reported from their clients',
    )
  if (tracing instanceof Tracing)
    for (const { reason, hint } of tracing.limits) notes.push(`${reason}; ${hint}`)
  return notes
}
