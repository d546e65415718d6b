import { release } from 'node:os'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import type { CaptureSink } from '../../foundation/model/capture-sink.ts'
import type { svcCounter } from '../../kernel/gen/sock.ts'
import type { MapHandle, Native } from '../../kernel/native.ts'
import { atLeast, type Need } from '../../kernel/needs.ts'
import type { TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/** What of a capture can change while it runs. */
export interface CaptureRules {
  /** Empty: all. `excludePorts` wins. Ports are those of the server's end. */
  readonly includePorts: readonly number[]
  readonly excludePorts: readonly number[]
  /** Records a second, and so many at once after a quiet time; what is above is counted in the kernel. 0: no bound. */
  readonly maxPerSecond: number
  /** Failed exchanges, and those slower than `slowNs`, have a bound of their own, of the same size. */
  readonly alwaysErrors: boolean
  readonly alwaysSlow: boolean
  readonly slowNs: number
}

/** What a capture back end is told. */
export interface CaptureOptions extends CaptureRules {
  /** Bytes, a power of two. */
  readonly ringBytes: number
  /** The same for each CPU, where perf buffers stand in for the ring. */
  readonly perfBytes: number
  /** Memory for records that wait until they are read, beside the ring. */
  readonly backlogBytes: number
  /** Of a message's head, at most. */
  readonly captureBytes: number
  /** Version of the kernel that it is to work for; left out: this one. */
  readonly kernel?: string
  /** Names of the protocols that are looked for. */
  readonly protocols: readonly string[]
  /** Set by the capture every few seconds. */
  readonly clock?: WallClock
  /** Upper bounds in nanoseconds of the buckets that the kernel counts in: 15 of them. */
  readonly boundsNs: readonly number[]
}

/** Records that the addon's thread took out of the ring, because they were not read in time. */
export interface Backlog {
  /** Memory that they have now, and the most that they have had. */
  readonly heldBytes: number
  readonly peakBytes: number
  /** Bytes of all that there were. */
  readonly absorbedBytes: number
}

/** Counters of the kernel side, by name (bpf/include/layout.h, svc_counter). */
export type CaptureCounter = (typeof svcCounter)[number]

/** Of one CPU, where perf buffers stand in for the ring (before Linux 5.8): records that were read, and found no room. */
export interface PerfBuffer {
  readonly cpu: number
  readonly received: number
  readonly lost: number
}

/** Records that found no room: exchanges, which are counted all the same, and parts of calls. */
export function lostRecords({ ring_full, segments_lost }: Record<CaptureCounter, number>): number {
  return ring_full + segments_lost
}

/** What went through the ring: nothing where perf buffers stand in for it. */
export function ringEvents(capture: Capture | undefined): {
  readonly size: number
  readonly received: number
  readonly lost: number
} {
  if (capture === undefined || capture.noRoom === 'perf_full') return { size: 0, received: 0, lost: 0 }
  return { size: capture.ringSize, received: capture.received, lost: lostRecords(capture.counters()) }
}

/** Programs at tracepoints may lose the CPU, and the kernel leaves out their runs for others meanwhile. */
export function maySkip(kernel = release()): boolean {
  return atLeast(kernel, 7, 0)
}

/** A capture that runs. */
export interface Capture {
  readonly backend: { readonly name: string }
  /** Bytes of the ring, or of all perf buffers. */
  readonly ringSize: number
  /** Empty where there is a ring. Reads the counters of all CPUs. */
  readonly perfBuffers: readonly PerfBuffer[]
  /** Why what finds no room between kernel and svc is dropped. */
  readonly noRoom: 'ring_full' | 'perf_full'
  /** Records that were read. */
  readonly received: number
  /** TCP sockets of other processes that were open at the start, listening ones included. */
  readonly socketsFound: number
  /** Number of this process as the kernel side knows it: another than `process.pid` in a pid namespace of its own. */
  readonly selfPid: number
  /** Milliseconds since the last drain; 0 once it has detached, as nothing waits then. */
  readonly sinceDrainMs: number
  /** Which request each thread works on, to be shared with the sampler's object; undefined: it cannot be told. */
  readonly requests?: MapHandle
  /**
   * Until when all records have been handed on, by `performance.now()`: now, but while more wait than there was time for.
   * Never goes back.
   */
  readonly reachedMs: number
  /** The same in nanoseconds of the monotonic clock. */
  readonly reachedNs: number
  readonly backlog: Backlog
  /** Bytes that the backlog may have from now on. */
  limitBacklog(bytes: number): void
  /** Whether `maxPerSecond` holds: else every call is read here. */
  readonly hasBudget: boolean
  /** Milliseconds since the start in which records were handed on. */
  readonly busyMs: number
  /** Hands on the records that wait, for some milliseconds; those that are left follow by themselves. */
  drain(): void
  /** Resolves when the records that wait now have been handed on, or after `mostMs`. */
  settled(mostMs: number): Promise<void>
  /** Hands on what the kernel counted since the last call, records first, as far as there is time for them. */
  collect(): void
  /** What the kernel side counted, over all CPUs. After the end: what it had counted then. */
  counters(): Record<CaptureCounter, number>
  apply(rules: CaptureRules): void
  /** A connection is not what it was taken for: its bytes are no longer passed on. */
  refuse(connection: number): void
  /** Whether `requests` is kept. Up to 25 ns for each call on a socket; off at first. */
  trackRequests?(on: boolean): void
  /** Reads inside TLS from now on, until it is closed. Throws where the kernel refuses what that takes. Once. */
  tls(options: TlsOptions): TlsProbes
  /** Detaches, and hands on all records. What was counted can still be collected. */
  detach(): void
  /** Detaches and unloads. May be called again. */
  close(): void
}

/** A way of seeing the bytes that go over sockets. */
export interface Backend {
  /** As `agent.ebpf.backend` names it. */
  readonly name: string
  readonly summary: string
  readonly needs: readonly Need[]
  /** Its BPF object that takes heads of so many bytes; undefined where none takes them. */
  objectFor(captureBytes: number): string | undefined
  /** Loads and attaches. Throws where the kernel refuses; nothing of it stays in the kernel then. */
  open(native: Native, options: CaptureOptions, sink: CaptureSink): Capture
}

/** A back end whose programs know the socket, as `SocketCapture` takes it. */
export interface CaptureBackend extends Backend {
  /** Its BPF objects, smallest first: each takes heads of up to so many bytes. */
  readonly objects: readonly { readonly file: string; readonly captureBytes: number }[]
  readonly programs: readonly string[]
  /** For what those miss while one of them has lost the CPU: since Linux 7.0. */
  readonly again: readonly string[]
  /** Those of its programs that are attached to functions of libraries, one by one (src/signals/capture/tls). */
  readonly uprobes: readonly string[]
  /** The iterator that tells the kernel who the agent is and finds the sockets that are open already. */
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
    readonly ownerSeedsSize: number
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
