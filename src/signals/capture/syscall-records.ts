import { pageSizeBytes } from '../../foundation/lib/page-size.ts'
import { svcKind, svcThread } from '../../kernel/gen/syscalls.ts'
import {
  type MapHandle,
  type Native,
  type PerfHandle,
  perfMoreWaits,
  type RingHandle,
} from '../../kernel/native.ts'
import type { Backlog, PerfBuffer } from './capture.ts'

const twoTo32 = 4294967296
const kinds = { thread: svcKind.indexOf('thread') }
/** Newer records wait: older ones may still be in progress, or unseen on another CPU. */
const marginNs = 1_000_000
const ringBatchBytes = 2 ** 20
/** Maximum memory of a perf buffer batch, and minimum per CPU; the rest stays in the buffers. */
const perfBatchBytes = 2 ** 22
const perfShareBytes = 2 ** 17
/** Free room below which nothing more is read, for a ring, and per CPU (LEAST_ROOM in native/perf.c). */
const leastRoomBytes = 2 ** 16

/** Records of the kernel side in order of time, from any buffer. */
export interface Records {
  /** Memory of the records; `words32` and `words16` are views of it. */
  readonly bytes: Buffer
  readonly words32: Uint32Array
  readonly words16: Uint16Array
  /** Offsets of the `count` records of a batch. Each is u32 length, u32, payload. */
  readonly offsets: Uint32Array
  /** Total size of the buffers in bytes. */
  readonly size: number
  /** Becomes readable when much is pending; undefined if a thread moves unread records. */
  readonly fd: number | undefined
  /** Time of the newest record of the last batch, in nanoseconds; greater than 0. */
  readonly newestNs: number
  readonly backlog: Backlog
  limitBacklog(bytes: number): void
  /** Reads the next batch and returns the number of records. With `all`, no record waits for older ones. */
  take(all: boolean): number
  /** Whether the last batch was so large that more may be pending. */
  readonly more: boolean
  /** Copies a record of the batch to the next one. False: no room. */
  keep(index: number): boolean
  /** Empty if there is a ring. */
  readonly perfBuffers: readonly PerfBuffer[]
  close(): void
}

/** A batch, preceded by records of the last one that were not due. */
abstract class Batches implements Records {
  readonly bytes: Buffer
  readonly words32: Uint32Array
  readonly words16: Uint16Array
  readonly offsets: Uint32Array
  more = false
  newestNs = 1
  abstract readonly size: number
  abstract readonly fd: number | undefined
  abstract readonly backlog: Backlog
  abstract readonly perfBuffers: readonly PerfBuffer[]
  protected readonly native: Native
  readonly #waiting: Buffer
  #waitingLength = 0
  readonly #times: Float64Array
  readonly #leastRoom: number

  constructor(native: Native, sizeBytes: number, leastRoom: number) {
    this.#leastRoom = leastRoom
    const memory = new ArrayBuffer(sizeBytes)
    this.native = native
    this.bytes = Buffer.from(memory)
    this.words32 = new Uint32Array(memory)
    this.words16 = new Uint16Array(memory)
    this.offsets = new Uint32Array(sizeBytes / (8 + svcThread.size))
    this.#times = new Float64Array(this.offsets.length)
    this.#waiting = Buffer.allocUnsafeSlow(sizeBytes)
  }

  take(all: boolean): number {
    const { bytes, words32, offsets } = this
    const times = this.#times
    const leastRoom = this.#leastRoom
    const kept = this.#waitingLength
    this.#waiting.copy(bytes, 0, 0, kept)
    let length = kept
    const drains = bytes.length - length > leastRoom
    if (drains) length += this.drain(bytes.subarray(length))
    let count = 0
    let time = 0
    // Time up to which the records of all CPUs are complete, if a CPU has more.
    let whole = Number.POSITIVE_INFINITY
    for (let at = 0; at < length; at += recordBytes(words32[at >>> 2]!)) {
      // Thread records have no time; they directly follow another record of their CPU.
      if (words32[(at + 8) >>> 2] !== kinds.thread)
        time = words32[(at + 16) >>> 2]! + words32[(at + 20) >>> 2]! * twoTo32
      // For kept records, more may have arrived by now.
      if (words32[(at + 4) >>> 2]! >= perfMoreWaits && (at >= kept || !drains)) whole = Math.min(whole, time)
      times[count] = time
      offsets[count++] = at
    }
    this.more = length > bytes.length / 2 || whole !== Number.POSITIVE_INFINITY
    sortByTime(offsets, times, count)
    let due = count
    if (!all) {
      const now = this.native.clock().monotonicNs
      // More records of its time may follow a full batch.
      const horizon = (this.more ? Math.min(now, whole, times[count - 1]!) : now) - marginNs
      while (due > 0 && times[due - 1]! >= horizon) due--
      // Unless one millisecond fills the batch, and there is no room for more.
      const goesOn = whole !== Number.POSITIVE_INFINITY && bytes.length - length > leastRoom
      if (this.more && due === 0 && !goesOn) due = count
    }
    if (due > 0) this.newestNs = Math.max(1, times[due - 1]!)
    this.#waitingLength = 0
    for (let i = due; i < count; i++) this.keep(i)
    return due
  }

  keep(index: number): boolean {
    const at = this.offsets[index]!
    const bytes = recordBytes(this.words32[at >>> 2]!)
    if (bytes > this.#waiting.length - this.#waitingLength) return false
    this.bytes.copy(this.#waiting, this.#waitingLength, at, at + bytes)
    this.#waitingLength += bytes
    return true
  }

  abstract limitBacklog(bytes: number): void
  abstract close(): void
  protected abstract drain(target: Buffer): number
}

/** Ring buffer of Linux 5.8 and later. */
export class RingRecords extends Batches {
  readonly size: number
  readonly fd: undefined
  readonly perfBuffers = []
  readonly #ring: RingHandle
  #last: Backlog | undefined

  constructor(native: Native, map: MapHandle, backlogBytes: number) {
    super(native, ringBatchBytes, leastRoomBytes)
    this.#ring = native.ringOpen(map)
    native.ringAbsorb(this.#ring, backlogBytes)
    this.size = this.#ring.size
  }

  get backlog(): Backlog {
    return this.#last ?? this.native.ringCounters(this.#ring)
  }

  limitBacklog(bytes: number): void {
    this.native.ringAbsorb(this.#ring, bytes)
  }

  close(): void {
    this.#last = this.backlog
    this.native.ringClose(this.#ring)
  }

  protected drain(target: Buffer): number {
    return this.native.ringDrain(this.#ring, target)
  }
}

/** One perf buffer per CPU. */
export class PerfRecords extends Batches {
  readonly size: number
  readonly fd: number
  /** No backlog: the buffers of all CPUs are sorted together. */
  readonly backlog: Backlog = { heldBytes: 0, peakBytes: 0, absorbedBytes: 0 }
  readonly #perf: PerfHandle
  #last: readonly PerfBuffer[] | undefined

  /** `perCpu`: size of each buffer in bytes, a power of two; a page if that is larger. */
  constructor(native: Native, map: MapHandle, perCpu: number) {
    const cpus = native.numCpus()
    const pages = Math.max(1, perCpu / pageSizeBytes())
    // Room for the content of the buffers, and for as much kept from before.
    const wanted = Math.min(2 * cpus * pages * pageSizeBytes(), perfBatchBytes)
    super(native, Math.max(cpus * perfShareBytes, wanted), cpus * leastRoomBytes)
    this.#perf = native.perfOpen(map, pages, (pages * pageSizeBytes()) / 4)
    this.size = cpus * pages * pageSizeBytes()
    this.fd = this.#perf.fd
  }

  /** The kernel reports losses before the next record that has room. */
  get perfBuffers(): readonly PerfBuffer[] {
    return (
      this.#last ??
      this.native
        .perfCounters(this.#perf)
        .map(({ cpu, records, lost, oversized }) => ({ cpu, received: records, lost: lost + oversized }))
    )
  }

  limitBacklog(): void {}

  close(): void {
    this.#last = this.perfBuffers
    this.native.perfClose(this.#perf)
  }

  protected drain(target: Buffer): number {
    return this.native.perfDrain(this.#perf, target)
  }
}

function recordBytes(length: number): number {
  return 8 + ((length + 7) & ~7)
}

/** Sorts records by time; stable. Fast for nearly sorted input, and for a few sorted runs. */
export function sortByTime(offsets: Uint32Array, times: Float64Array, count: number): void {
  let far = 0
  for (let i = 1; i < count; i++) {
    const time = times[i]!
    if (times[i - 1]! <= time) continue
    const offset = offsets[i]!
    let to = i
    while (to > 0 && times[to - 1]! > time) {
      times[to] = times[to - 1]!
      offsets[to] = offsets[to - 1]!
      to--
    }
    times[to] = time
    offsets[to] = offset
    far += i - to
    if (far > 16 * count) {
      sortRuns(offsets, times, count)
      return
    }
  }
}

function sortRuns(offsets: Uint32Array, times: Float64Array, count: number): void {
  const order = new Uint32Array(count)
  for (let i = 0; i < count; i++) order[i] = i
  const oldOffsets = offsets.slice(0, count)
  const oldTimes = times.slice(0, count)
  order.sort((a, b) => oldTimes[a]! - oldTimes[b]! || a - b)
  for (let i = 0; i < count; i++) {
    offsets[i] = oldOffsets[order[i]!]!
    times[i] = oldTimes[order[i]!]!
  }
}
