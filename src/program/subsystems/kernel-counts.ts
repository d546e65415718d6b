// Kernel counts besides requests: connections, process starts and exits, system calls. One object runs all three.

import { hostPid } from '../../kernel/needs-processes.ts'
import * as parts from '../agent/kernel-parts.ts'
import { KernelTelemetry } from '../agent/kernel-telemetry.ts'
import { nested } from '../agent/self-metrics.ts'
import { type Agent, fact, type State, type Subsystem } from '../agent/subsystem.ts'
import { cpu } from './cpu.ts'
import { discovery } from './discovery.ts'
import { ebpf } from './ebpf.ts'
import { exporting } from './exporting.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'
import { runningOf, traces } from './traces.ts'

/** Undefined: eBPF is off. */
type Counts = KernelTelemetry | undefined

export const connections: Subsystem<Counts> = {
  name: 'connections',
  needs: parts.connections,
  create: telemetry,
  stop: own => own?.stop(),
  state: stateOf(parts.connections, { measures: () => [fact('connections', 'on')] }),
  metrics: { share_losses_total: nested(own => own?.losses ?? {}) },
}

export const processEvents: Subsystem<Counts> = {
  name: 'process events',
  needs: parts.processEvents,
  source: { id: 'events', name: 'process events', signal: 'logs', hidden: ['off'] },
  create: agent => agent.of(connections),
  state: stateOf(parts.processEvents, { items: 'rest' }),
}

export const systemCalls: Subsystem<Counts> = {
  name: 'system calls',
  needs: parts.systemCalls,
  create: agent => agent.of(connections),
  state: stateOf(parts.systemCalls, {}),
}

function telemetry(agent: Agent): Counts {
  const { config, events } = agent
  const tracing = runningOf(agent.of(traces))
  const { processes: table, profiled, resources } = agent.of(processes)
  if (parts.ebpfOff(config) !== undefined) return undefined
  // A capture detects this itself.
  if (tracing === undefined && isApart()) table.withoutProc()
  const counts = new KernelTelemetry({
    config,
    pipeline: agent.of(exporting).pipeline,
    processes: table,
    profiled,
    host: agent.of(discovery).host,
    resources,
    governor: agent.of(memory).governor,
    log: agent.of(ebpf).log,
    selfPid: tracing?.capture.selfPid ?? process.pid,
    onExec: pid => tracing?.tls?.noticed(pid),
  })
  events.edges.listen(({ client, server, failed, clientNs, serverNs }) =>
    counts.graph.edge(client, server, failed, clientNs, serverNs),
  )
  agent.of(cpu).governor.register('process_events', counts.lever)
  return counts
}

function stateOf(part: parts.KernelPart, running: Partial<State>): NonNullable<Subsystem<Counts>['state']> {
  return (own, config) => {
    const off = parts.whyOff(part, config)
    if (off !== undefined) return off
    const faults = (own?.faults ?? []).filter(({ subsystem }) => subsystem === part.subsystem)
    if (faults.length === 0) return { state: 'ok', ...running }
    return { state: 'failed', faults: faults.map(fault => ({ ...fault, fails: 'ebpf' })) }
  }
}

/** Whether the kernel's PIDs differ from those of /proc here. */
function isApart(): boolean {
  const found = hostPid.try()
  return 'fault' in found && found.fault === 'own'
}
