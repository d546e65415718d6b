// The parts of svc that use eBPF: each is enabled, and runs or fails, separately.

import type { Config } from '../../config/index.ts'
import type { Finding } from '../../kernel/need.ts'
import type { NotLoaded } from '../../kernel/why-not-loaded.ts'
import type { Degradation } from '../../view/api/types.ts'
import { type Off, off, offByMode } from './off.ts'

export interface KernelPart {
  /** Its name in documents and in the log. */
  readonly subsystem: string
  /** The checks of `svc doctor` that test its needs. */
  readonly topic: 'traces' | 'kernel' | 'profiles'
  /** The setting to do without it. */
  readonly without: string
  /** Why it is off while eBPF is on; undefined if it is enabled. */
  readonly off: (agent: Config['agent']) => Off | undefined
}

/** A part with a switch of its own. */
function part(
  subsystem: string,
  topic: KernelPart['topic'],
  key: string,
  isOn: (agent: Config['agent']) => boolean,
): KernelPart {
  return { subsystem, topic, without: `${key}: false`, off: agent => (isOn(agent) ? undefined : off(key)) }
}

const network = 'agent.ebpf.network.enabled'
export const traces = part('traces', 'traces', network, ({ ebpf }) => ebpf.network.enabled)

export const connections: KernelPart = {
  subsystem: 'connections',
  topic: 'kernel',
  without: 'agent.ebpf.network.tcp_metrics: false and flows: false',
  off: ({ ebpf: { network: of } }) => {
    if (!of.enabled) return off(network)
    if (of.tcp_metrics || of.flows) return undefined
    const [keys, hint] = ['agent.ebpf.network.tcp_metrics and flows', 'set agent.ebpf.network.flows: true']
    return { state: 'off', detail: `${keys} are false`, hint }
  },
}

export const processEvents = part(
  'process events',
  'kernel',
  'agent.ebpf.process.enabled',
  ({ ebpf }) => ebpf.process.enabled,
)

export const systemCalls = part(
  'system calls',
  'kernel',
  'agent.ebpf.syscalls.enabled',
  ({ ebpf }) => ebpf.syscalls.enabled,
)

export const profiles = part(
  'profiles',
  'profiles',
  'agent.profiling.enabled',
  ({ profiling }) => profiling.enabled,
)

export const hostCounts: KernelPart = {
  subsystem: 'host metrics by eBPF',
  topic: 'kernel',
  without: 'agent.nodeexporter.ebpf_enhanced: false',
  off: ({ nodeexporter }) => {
    if (!nodeexporter.enabled) return off('agent.nodeexporter.enabled')
    return nodeexporter.ebpf_enhanced ? undefined : off('agent.nodeexporter.ebpf_enhanced')
  },
}

/** Why nothing at all is loaded into the kernel; undefined if a part is enabled. */
export function ebpfOff(config: Config): Off | undefined {
  return offByMode(config) ?? (config.agent.ebpf.enabled ? undefined : off('agent.ebpf.enabled'))
}

/** Why a part is off; undefined if it is enabled. */
export function whyOff(part: KernelPart, config: Config): Off | undefined {
  return ebpfOff(config) ?? part.off(config.agent)
}

/** The degradation of a part that does not run. */
export function failureOf({ subsystem, topic, without }: KernelPart, why: NotLoaded): Degradation {
  const { reason, hint } = why
  return { subsystem, reason, hint: hint || `run svc doctor ${topic}; or set ${without}` }
}

/** Result of a check of programs that the agent does not load a second time. */
export function untried(why: string, topic: KernelPart['topic']): Finding {
  const detail = `${why}; run svc doctor ${topic} to load them (the agent does not, as that would block it)`
  return { fault: 'untried', detail }
}
