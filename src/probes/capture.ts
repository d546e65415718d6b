import type { Need } from '../kernel/needs.ts'
import type { Exchange } from '../model/exchange.ts'
import type { Segment } from '../model/stream.ts'

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
  /** Of a message's head, at most. */
  readonly captureBytes: number
  /** Names of the protocols that are looked for. */
  readonly protocols: readonly string[]
  /** Upper bounds in nanoseconds of the buckets that the kernel counts in: 15 of them. */
  readonly boundsNs: readonly number[]
}

/** Where a capture hands on what it saw. The exchange is reused: nothing of it may be kept. */
export interface CaptureSink {
  /** A request whose head is whole: what is known of its exchange so far. */
  begin(exchange: Exchange): void
  /** Bytes of a connection that is read in user space. Reused as well. */
  segment(segment: Segment): void
  /** A thread was started by another of its process; numbers of the initial pid namespace. */
  thread(pid: number, parentTid: number, tid: number): void
  exchange(exchange: Exchange): void
  /**
   * Exchanges that the kernel only counted: `exchange` has what they share. Its head is as short as can be, with the
   * target `*`, since the path is not known.
   */
  counted(exchange: Exchange, count: number, sumNs: number, buckets: ArrayLike<number>): void
}

/**
 * A way of seeing the bytes that go over sockets. All back ends fill the same maps with the same layouts (bpf/include),
 * so that what reads them is one class, `SocketCapture`; a back end is a declaration.
 */
export interface CaptureBackend {
  /** As `agent.ebpf.backend` names it. */
  readonly name: string
  readonly summary: string
  readonly needs: readonly Need[]
  /** Its BPF objects, smallest first: each takes heads of up to so many bytes. */
  readonly objects: readonly { readonly file: string; readonly captureBytes: number }[]
  readonly programs: readonly string[]
  /** Those of its programs that are attached to functions of libraries, one by one (src/probes/tls). */
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
    readonly ringWakeupBytes: number
    readonly svcBoundsNs: number
    readonly svcBoundsNsSize: number
  }
  readonly bss: {
    readonly size: number
    readonly selfPid: number
    readonly ringWoken: number
    readonly budgetPerWindow: number
    readonly budgetBurst: number
    readonly budgetShare: number
    readonly alwaysErrors: number
    readonly alwaysSlow: number
    readonly slowNs: number
    readonly protocolsEnabled: number
    readonly ports: number
    readonly portsSize: number
  }
}
