// What the management API answers, and what it asks of the agent to do so. Fields keep the spelling that they have
// on the wire.

import type { Registry } from '../lib/registry.ts'

export interface Health {
  readonly healthy: boolean
  /** What is stuck, in words; only where `healthy` is false. */
  readonly reason?: string
}

/** `ok`, or `failed: ` and the reason. A subsystem that is switched off is `ok`. */
export type ReadinessChecks = Record<'ebpf' | 'otlp' | 'discovery', string>

/** A subsystem that does not work, or does less than it was asked to. */
export interface Degradation {
  readonly subsystem: string
  readonly reason: string
  /** What to do about it, '' where nothing is known. */
  readonly mend: string
}

export interface StatusDocument {
  readonly version: string
  readonly commit: string
  /** ISO 8601, UTC. */
  readonly built: string
  /** As `uptimeText` writes it. */
  readonly uptime: string
  readonly mode: string
  readonly host: {
    readonly name: string
    readonly os: string
    readonly arch: string
    readonly kernel: string
  }
  readonly ebpf: {
    readonly enabled: boolean
    readonly programs_loaded: number
    readonly maps_created: number
    /** Bytes. */
    readonly ringbuf_size: number
  }
  readonly profiling: {
    readonly enabled: boolean
    /** Hz. */
    readonly sample_rate: number
    readonly profiles_collected: number
  }
  readonly export: {
    /** `host:port`, '' where none is configured. */
    readonly endpoint: string
    readonly connected: boolean
    /** ISO 8601; null before the first. */
    readonly last_export: string | null
    readonly spans_exported: number
    readonly metrics_exported: number
  }
  readonly discovery: {
    readonly kubernetes: boolean
    readonly docker: boolean
    readonly pods_discovered: number
    readonly containers_discovered: number
  }
  readonly degraded: readonly Degradation[]
}

export interface EbpfDocument {
  readonly enabled: boolean
  readonly programs: readonly {
    readonly name: string
    /** As the kernel names it: `kprobe`, `tracing`, `tracepoint` … */
    readonly type: string
    readonly attached: boolean
    readonly id: number
    /** Nanoseconds in all runs, and how many; only with `agent.ebpf.debug`, which has the kernel measure them. */
    readonly run_time_ns?: number
    readonly run_count?: number
  }[]
  readonly maps: readonly {
    readonly name: string
    readonly type: string
    readonly entries: number
    readonly max_entries: number
  }[]
  readonly ringbuf: {
    /** Bytes. */
    readonly size: number
    readonly events_received: number
    readonly events_lost: number
  }
  /** Name of the capture back end, '' for none. */
  readonly backend: string
  /** What the kernel side counted, by name: every way in which traffic is not seen one by one. */
  readonly counters: Readonly<Record<string, number>>
}

/** All but the bytes are items. */
export interface QueueDocument {
  readonly size: number
  readonly capacity: number
  readonly exported: number
  readonly dropped: number
  readonly bytes: number
  readonly capacity_bytes: number
}

export interface ExportDocument {
  readonly endpoint: string
  readonly protocol: string
  readonly tls: boolean
  readonly compression: string
  readonly connected: boolean
  readonly last_export: string | null
  readonly last_error: string | null
  readonly queues: Record<'traces' | 'metrics' | 'logs' | 'profiles', QueueDocument>
}

/** What the API reads of the running agent. Every call answers at once, from memory. */
export interface AgentView {
  health(): Health
  readiness(): ReadinessChecks
  status(): StatusDocument
  ebpf(): EbpfDocument
  exporting(): ExportDocument
  /** The whole effective configuration, secrets redacted. */
  config(): unknown
  readonly registry: Registry
}

/** One subsystem at start, as a person at a terminal reads it. */
export interface BannerLine {
  readonly state: 'ok' | 'limited' | 'off' | 'none' | 'failed'
  readonly name: string
  /** What works, or why it does not. */
  readonly detail: string
  /** What to do about it. */
  readonly mend?: string
}

/** An agent that has started. */
export interface RunningAgent {
  readonly view: AgentView
  banner(): readonly BannerLine[]
  /** Where to look: URLs of the management API and what they show; none where it is off. */
  links(): readonly { readonly what: string; readonly url: string }[]
  /** Drains and ends everything within the configured shutdown timeout. Calling it again waits for the first call. */
  stop(): Promise<void>
}
