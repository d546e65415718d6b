// What svc does with eBPF, part by part: each is asked for, and runs or fails, by itself.

import type { Degradation } from '../api/types.ts'
import type { Config } from '../config/index.ts'
import type { NotLoaded } from '../kernel/why-not-loaded.ts'

export interface KernelPart {
  /** What it is called in documents and in the log. */
  readonly subsystem: string
  /** Which checks of `svc doctor` try what it needs. */
  readonly topic: 'traces' | 'kernel' | 'profiles'
  /** The setting of who does without it. */
  readonly without: string
  /** The setting by which it is not asked for, where eBPF is; undefined: it is asked for. */
  readonly off: (agent: Config['agent']) => string | undefined
}

const network = 'agent.ebpf.network.enabled is false'

export const traces: KernelPart = {
  subsystem: 'traces',
  topic: 'traces',
  without: 'agent.ebpf.network.enabled: false',
  off: ({ ebpf }) => (ebpf.network.enabled ? undefined : network),
}

export const connections: KernelPart = {
  subsystem: 'connections',
  topic: 'kernel',
  without: 'agent.ebpf.network.tcp_metrics: false and flows: false',
  off: ({ ebpf: { network: of } }) => {
    if (!of.enabled) return network
    return of.tcp_metrics || of.flows ? undefined : 'agent.ebpf.network.tcp_metrics and flows are false'
  },
}

export const processEvents: KernelPart = {
  subsystem: 'process events',
  topic: 'kernel',
  without: 'agent.ebpf.process.enabled: false',
  off: ({ ebpf }) => (ebpf.process.enabled ? undefined : 'agent.ebpf.process.enabled is false'),
}

export const systemCalls: KernelPart = {
  subsystem: 'system calls',
  topic: 'kernel',
  without: 'agent.ebpf.syscalls.enabled: false',
  off: ({ ebpf }) => (ebpf.syscalls.enabled ? undefined : 'agent.ebpf.syscalls.enabled is false'),
}

export const profiles: KernelPart = {
  subsystem: 'profiles',
  topic: 'profiles',
  without: 'agent.profiling.enabled: false',
  off: ({ profiling }) => (profiling.enabled ? undefined : 'agent.profiling.enabled is false'),
}

export const hostCounts: KernelPart = {
  subsystem: 'host metrics by eBPF',
  topic: 'kernel',
  without: 'agent.nodeexporter.ebpf_enhanced: false',
  off: ({ nodeexporter }) => {
    if (!nodeexporter.enabled) return 'agent.nodeexporter.enabled is false'
    return nodeexporter.ebpf_enhanced ? undefined : 'agent.nodeexporter.ebpf_enhanced is false'
  },
}

export const kernelParts: readonly KernelPart[] = [
  traces,
  connections,
  processEvents,
  systemCalls,
  profiles,
  hostCounts,
]

/** The setting by which nothing at all is loaded into the kernel; undefined: parts are that ask for it. */
export function ebpfOff({ mode, agent }: Config): string | undefined {
  if (mode === 'collector') return 'mode is collector'
  return agent.ebpf.enabled ? undefined : 'agent.ebpf.enabled is false'
}

/** The setting by which a part does not run; undefined: it is asked for. */
export function whyOff(part: KernelPart, config: Config): string | undefined {
  return ebpfOff(config) ?? part.off(config.agent)
}

/** That a part does not run. */
export function failureOf({ subsystem, topic, without }: KernelPart, why: NotLoaded): Degradation {
  const { reason, hint } = why
  return { subsystem, reason, hint: hint || `run svc doctor ${topic}; or set ${without}` }
}
