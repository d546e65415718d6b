import { release } from 'node:os'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import type { svcCounter } from '../../kernel/gen/sock.ts'
import type { MapHandle, Native } from '../../kernel/native.ts'
import { atLeast, type Need } from '../../kernel/needs.ts'
import type { TracingSink } from '../traces/tracing/tracing-sink.ts'
import type { TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/** Rules of a capture that can change while it runs. */
export interface CaptureRules {
  /** Ports of the server side. Empty: all. `excludePorts` has precedence. */
  readonly includePorts: readonly number[]
  readonly excludePorts: readonly number[]
  /**
   * Maximum records per second, and burst after a quiet period; excess records are only counted in the kernel. 0: no
   * limit.
   */
  readonly maxPerSecond: number
  /** Failed exchanges, and those slower than `slowNs`, have a separate limit of the same size. */
  readonly alwaysErrors: boolean
  readonly alwaysSlow: boolean
  readonly slowNs: number
}

/** Settings of a capture back end. */
export interface CaptureOptions extends CaptureRules {
  /** Size in bytes, a power of two. */
  readonly ringBytes: number
  /** Size per CPU, if perf buffers replace the ring. */
  readonly perfBytes: number
  /** Memory for unread records, in addition to the ring. */
  readonly backlogBytes: number
  /** Maximum bytes of a message's head. */
  readonly captureBytes: number
  /** Target kernel version; the running kernel if omitted. */
  readonly kernel?: string
  /** Names of the protocols to detect. */
  readonly protocols: readonly string[]
  /** Set by the capture every few seconds. */
  readonly clock?: WallClock
  /** Upper bounds of the kernel's 15 histogram buckets, in nanoseconds. */
  readonly boundsNs: readonly number[]
}

/** Receives what a capture sees. Instances are reused: nothing of them may be kept. */
export type CaptureSink = Pick<TracingSink, keyof TracingSink>

/** Records that the addon's thread moved out of the ring because they were not read in time. */
export interface Backlog {
  /** Current and maximum memory of these records. */
  readonly heldBytes: number
  readonly peakBytes: number
  /** Total bytes moved. */
  readonly absorbedBytes: number
}

/** Counters of the kernel side by name (bpf/include/layout.h, svc_counter). */
export type CaptureCounter = (typeof svcCounter)[number]

/** Records read and lost on one CPU, if perf buffers replace the ring (before Linux 5.8). */
export interface PerfBuffer {
  readonly cpu: number
  readonly received: number
  readonly lost: number
}

/** Records lost for lack of room: exchanges, which are still counted, and parts of calls. */
export function lostRecords({ ring_full, segments_lost }: Record<CaptureCounter, number>): number {
  return ring_full + segments_lost
}

/** Records through the ring; zero if perf buffers replace it. */
export function ringEvents(capture: Capture | undefined): {
  readonly size: number
  readonly received: number
  readonly lost: number
} {
  if (capture === undefined || capture.noRoom === 'perf_full') return { size: 0, received: 0, lost: 0 }
  return { size: capture.ringSize, received: capture.received, lost: lostRecords(capture.counters()) }
}

/** Tracepoint programs may be preempted, and the kernel then skips their runs for other tasks. */
export function maySkip(kernel = release()): boolean {
  return atLeast(kernel, 7, 0)
}

/** A running capture. */
export interface Capture {
  readonly backend: { readonly name: string }
  /** Size of the ring, or of all perf buffers, in bytes. */
  readonly ringSize: number
  /** Empty if there is a ring. Reads the counters of all CPUs. */
  readonly perfBuffers: readonly PerfBuffer[]
  /** Drop reason for lack of room between kernel and svc. */
  readonly noRoom: 'ring_full' | 'perf_full'
  /** Number of records read. */
  readonly received: number
  /** TCP sockets of other processes that were open at the start, listening ones included. */
  readonly socketsFound: number
  /** Number of this process on the kernel side; differs from `process.pid` in a PID namespace. */
  readonly selfPid: number
  /** Milliseconds since the last drain; 0 once detached, as nothing is pending then. */
  readonly sinceDrainMs: number
  /** Request that each thread works on, to share with the sampler's object; undefined if unavailable. */
  readonly requests?: MapHandle
  /**
   * Time up to which all records have been delivered, by `performance.now()`: the current time unless there is a
   * backlog. Never decreases.
   */
  readonly reachedMs: number
  /** The same in nanoseconds of the monotonic clock. */
  readonly reachedNs: number
  readonly backlog: Backlog
  /** Sets the maximum memory of the backlog. */
  limitBacklog(bytes: number): void
  /** Whether `maxPerSecond` is enforced; otherwise every call is read here. */
  readonly hasBudget: boolean
  /** Milliseconds spent on delivery since the start. */
  readonly busyMs: number
  /** Delivers pending records for some milliseconds; the rest follows automatically. */
  drain(): void
  /** Calls back when the host becomes quiet, and when it no longer is: other work for records may rest as well. */
  onPace(paced: (quiet: boolean) => void): void
  /** Resolves when the currently pending records are delivered, or after `mostMs`. */
  settled(mostMs: number): Promise<void>
  /** Delivers pending records as far as time allows, then the kernel's counts since the last call. */
  collect(): void
  /** Counters of the kernel side, over all CPUs; the final values after the end. */
  counters(): Record<CaptureCounter, number>
  apply(rules: CaptureRules): void
  /** Drops further bytes of a connection that turned out to be of another kind. */
  refuse(connection: number): void
  /** Switches `requests` on or off. Costs up to 25 ns per socket call; off at first. */
  trackRequests?(on: boolean): void
  /** Starts to read inside TLS, until closed. Throws if the kernel rejects the programs. Call once. */
  tls(options: TlsOptions): TlsProbes
  /** Detaches, and delivers all records. Counts can still be collected. */
  detach(): void
  /** Detaches and unloads. Idempotent. */
  close(): void
}

/** A way to see the bytes of sockets. */
export interface Backend {
  /** Value of `agent.ebpf.backend`. */
  readonly name: string
  readonly summary: string
  readonly needs: readonly Need[]
  /** BPF object for heads of this size; undefined if there is none. */
  objectFor(captureBytes: number): string | undefined
  /** Loads and attaches. Throws if the kernel rejects the programs; nothing remains loaded then. */
  open(native: Native, options: CaptureOptions, sink: CaptureSink): Capture
}

/** A back end for `SocketCapture`, whose programs know the socket. */
export interface CaptureBackend extends Backend {
  /** BPF objects in ascending order of their maximum head size. */
  readonly objects: readonly { readonly file: string; readonly captureBytes: number }[]
  readonly programs: readonly string[]
  /** Second copies of programs, for calls skipped while the first copy is preempted (Linux 7.0 and later). */
  readonly again: readonly string[]
  /** Programs that are attached to individual library functions (src/signals/capture/tls). */
  readonly uprobes: readonly string[]
  /** Iterator that identifies the agent to the kernel side and finds open sockets. */
  readonly bootstrap: string
  /** Offsets of its global variables, from the object's BTF. */
  readonly layout: CaptureLayout
}

export interface CaptureLayout {
  readonly rodata: {
    readonly size: number
    readonly captureBytes: number
    readonly callsComeTwice: number
    readonly ringWakeupBytes: number
    readonly svcBoundsNs: number
    readonly svcBoundsNsSize: number
    readonly ownerSeeds: number
  }
  readonly bss: {
    readonly size: number
    readonly selfPid: number
    readonly budgetNs: number
    readonly budgetBurst: number
    readonly budgetShare: number
    readonly alwaysErrors: number
    readonly alwaysSlow: number
    readonly slowNs: number
    readonly trackRequests: number
    readonly protocolsEnabled: number
    readonly ports: number
    readonly portsSize: number
  }
}
