import type { Config } from '../config/index.ts'

/** A part of what the kernel counts beside requests; each runs or fails by itself. */
export interface KernelPart {
  /** What it is called in `/status` and in the log. */
  readonly subsystem: string
  /** Whether it is asked for. */
  readonly wanted: (ebpf: Config['agent']['ebpf']) => boolean
}

export const connections: KernelPart = {
  subsystem: 'connections',
  wanted: ({ network }) => network.enabled && (network.tcp_metrics || network.flows),
}

export const processEvents: KernelPart = {
  subsystem: 'process events',
  wanted: ({ process }) => process.enabled,
}

export const systemCalls: KernelPart = {
  subsystem: 'system calls',
  wanted: ({ syscalls }) => syscalls.enabled,
}
