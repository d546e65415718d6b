import { readFileSync } from 'node:fs'
import { u64 } from '../../foundation/lib/u64.ts'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import { Segment } from '../../foundation/model/stream.ts'
import { findAsset } from '../../kernel/assets.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'
import {
  bss as sockBss,
  svcKind,
  svcProtocol,
  svcRecord,
  svcRed,
  svcRedKey,
  svcSegment,
  svcSocket,
  svcThread,
} from '../../kernel/gen/sock.ts'
import { readIterator } from '../../kernel/iterator.ts'
import { beginLoad, takeBegun } from '../../kernel/load-ahead.ts'
import {
  batchCursor,
  batchDone,
  type MapHandle,
  type Native,
  type ObjectHandle,
  type RingHandle,
} from '../../kernel/native.ts'
import { setOwnerSeeds } from '../../kernel/owner-seeds.ts'
import { Bell } from './bell.ts'
import {
  type Backlog,
  type Capture,
  type CaptureBackend,
  type CaptureCounter,
  type CaptureOptions,
  type CaptureRules,
  type CaptureSink,
  maySkip,
} from './capture.ts'
import { DrainTurns } from './drain-turns.ts'
import { DrainedCapture } from './drained-capture.ts'
import { kernelCounters } from './kernel-counts.ts'
import { RecordReader } from './record-reader.ts'
import { oneForAll } from './tls/programs.ts'
import { type TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/** Interval of clock comparisons: NTP adjusts the wall clock. */
const clockMs = 10_000
/** Records of one batch: one or two milliseconds of work. */
const drainBytes = 64 * 1024
/** Maximum duration of pending records in `collect`. */
const collectMs = 25
/** Maximum duration of the final drain. */
const lastMs = 2_000
/** Unchanged collections after which a counted series is removed from the kernel. */
const idleCollections = 4
const iteratorBytes = 4 * 1024 * 1024
const batchEntries = 64
const twoTo32 = 4294967296

/** A series, identified by the bytes of its key. */
interface Counted {
  /** count, sum and buckets at the last collection. */
  readonly seen: Float64Array
  idle: number
}

/** Loads a capture back end, and reads its records and counts. */
export class SocketCapture extends DrainedCapture implements Capture {
  readonly backend: CaptureBackend
  readonly ringSize: number
  readonly perfBuffers = []
  readonly noRoom = 'ring_full'
  /** Number of records read from the ring. */
  received = 0
  /** TCP sockets of other processes that were open at the start, listening ones included. */
  socketsFound = 0
  /** Number of this process on the kernel side; differs from `process.pid` in a PID namespace. */
  readonly selfPid: number
  readonly requests: MapHandle
  readonly #native: Native
  /** Programs and maps. */
  readonly object: BpfObject
  readonly #sink: CaptureSink
  readonly #clock: WallClock | undefined
  readonly #ring: RingHandle
  protected readonly turns: DrainTurns
  readonly #reader = new RecordReader()
  readonly #piece = new Segment()
  readonly #bytes = Buffer.from(new ArrayBuffer(drainBytes))
  readonly #words32 = new Uint32Array(this.#bytes.buffer)
  readonly #words16 = new Uint16Array(this.#bytes.buffer)
  /** Global variables of the programs. */
  readonly #globals: ArrayBuffer
  readonly #counted = new Map<string, Counted>()
  readonly #buckets = new Float64Array(svcRed.bucketsSize / 8)
  readonly #attached: readonly string[]
  #clockAt = 0
  /** Time of the newest record but those of threads. */
  #newestNs = 0
  #lastBacklog: Backlog | undefined
  #lastCounters: Record<CaptureCounter, number> | undefined
  #closed = false

  /**
   * Loads and attaches. Throws if the kernel rejects the programs (`LoadError`, or an error of the native boundary);
   * nothing remains loaded then.
   */
  constructor(native: Native, backend: CaptureBackend, options: CaptureOptions, sink: CaptureSink) {
    super()
    this.#native = native
    this.backend = backend
    this.#sink = sink
    this.#clock = options.clock
    const file = backend.objectFor(options.captureBytes)
    const path = file && findAsset(file)
    if (!file || !path) {
      throw new Error(
        `BPF object ${file} for captures of ${options.captureBytes} bytes not found; run tools/setup`,
      )
    }
    try {
      native.bumpMemlock()
    } catch {
      // Only kernels before 5.11 count maps against the limit; they report it when they reject a map.
    }
    this.#attached = maySkip(options.kernel) ? [...backend.programs, ...backend.again] : backend.programs
    this.object = BpfObject.load(native, readFileSync(path), {
      name: backend.name,
      prepare: object => prepare(native, object, backend, options),
      begun: takeBegun(file),
    })
    let ring: RingHandle | undefined
    try {
      this.#setClock()
      this.requests = this.object.map('requests')
      const { bss } = backend.layout
      const globals = native.mapView(this.object.map('.bss'))
      this.#globals = globals
      new Uint32Array(globals, bss.protocolsEnabled, 1)[0] = protocolBits(options.protocols)
      this.apply(options)
      const ringMap = this.object.map('ring')
      ring = native.ringOpen(ringMap)
      native.ringAbsorb(ring, options.backlogBytes)
      this.#ring = ring
      this.ringSize = ring.size
      // The first pass identifies the agent, so that it never sees itself; the second finds the sockets that were
      // opened between the first and the attachment.
      this.#bootstrap()
      this.selfPid = new Uint32Array(globals, bss.selfPid, 1)[0]!
      for (const program of this.#attached) this.object.attach(program)
      this.socketsFound = this.#bootstrap()
      this.turns = new DrainTurns(() => this.#batch(), {
        newest: () => this.#newestNs,
        bell: rung => new Bell(native, this.object, rung),
      })
    } catch (error) {
      if (ring !== undefined) native.ringClose(ring)
      this.object.close()
      throw error
    }
  }

  readonly hasBudget = true

  get backlog(): Backlog {
    return this.#lastBacklog ?? this.#native.ringCounters(this.#ring)
  }

  limitBacklog(bytes: number): void {
    if (!this.#closed) this.#native.ringAbsorb(this.#ring, bytes)
  }

  collect(): void {
    if (this.#closed) return
    this.turns.run(collectMs)
    const map = this.object.map('red')
    const keys = Buffer.alloc(batchEntries * svcRedKey.size)
    const values = Buffer.alloc(batchEntries * map.slotSize)
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) {
      const n = this.#native.mapReadBatch(map, cursor, keys, values, false)
      for (let i = 0; i < n; i++) {
        const key = keys.subarray(i * svcRedKey.size, (i + 1) * svcRedKey.size)
        this.#countedOf(map, key, values.subarray(i * map.slotSize, (i + 1) * map.slotSize))
      }
    }
  }

  /** Counters of the kernel side, over all CPUs; the final values after the end. */
  counters(): Record<CaptureCounter, number> {
    if (this.#lastCounters !== undefined) return this.#lastCounters
    return kernelCounters(this.#native, this.object)
  }

  /**
   * Applies new rules, as often as needed. Writes only differences, each number atomically, so that the programs see no
   * intermediate state of unchanged rules. Takes about 0.1 ms, for the ports.
   */
  apply(rules: CaptureRules): void {
    const { bss } = this.backend.layout
    const globals = this.#globals
    const { maxPerSecond } = rules
    if (maxPerSecond > 0) {
      // Before the limit itself: a new limit must not apply without its burst.
      put(new BigInt64Array(globals, bss.budgetBurst, 1), BigInt(Math.ceil(maxPerSecond)))
      const share = Math.min(32, Math.max(1, Math.floor(maxPerSecond / 640)))
      put(new Uint32Array(globals, bss.budgetShare, 1), share)
    }
    const eachNs = maxPerSecond > 0 ? Math.max(1, Math.round(1e9 / maxPerSecond)) : 0
    put(new BigInt64Array(globals, bss.budgetNs, 1), BigInt(eachNs))
    put(new BigInt64Array(globals, bss.slowNs, 1), BigInt(Math.round(rules.slowNs)))
    put(new Uint8Array(globals, bss.alwaysErrors, 1), Number(rules.alwaysErrors))
    put(new Uint8Array(globals, bss.alwaysSlow, 1), Number(rules.alwaysSlow))
    const wanted = new Uint8Array(bss.portsSize).fill(Number(rules.includePorts.length > 0))
    for (const port of rules.includePorts) wanted[port] = 0
    for (const port of rules.excludePorts) wanted[port] = 1
    wanted[0] = 0 // connections without a known port
    const ports = new Uint8Array(globals, bss.ports, bss.portsSize)
    for (let port = 0; port < wanted.length; port++)
      if (ports[port] !== wanted[port]) ports[port] = wanted[port]!
  }

  /** Drops further bytes of a connection that turned out to be of another kind. */
  refuse(connection: number): void {
    if (this.#closed) return
    const key = Buffer.alloc(8)
    key.writeBigUInt64LE(BigInt(connection))
    this.#native.mapUpdate(this.object.map('refused'), key, new Uint8Array(1), 0)
  }

  trackRequests(on: boolean): void {
    put(new Uint8Array(this.#globals, this.backend.layout.bss.trackRequests, 1), Number(on))
  }

  /** Starts to read inside TLS, until closed. */
  tls(options: TlsOptions): TlsProbes {
    const attached = new Uint32Array(this.#globals, sockBss.tlsAttached, 1)
    const setAttached = (on: boolean) => {
      attached[0] = on ? 1 : 0
    }
    return new TlsProbes(this.object, {
      ...options,
      programs: oneForAll,
      selfPid: this.selfPid,
      setAttached,
    })
  }

  /** Detaches, and delivers all records. Counts can still be collected. */
  detach(): void {
    if (this.detached) return
    this.detached = true
    this.turns.stop()
    for (const program of this.#attached) this.object.detach(program)
    const endMs = performance.now() + lastMs
    while (this.#batch() !== 0 && performance.now() < endMs);
    this.#skip()
  }

  /** Detaches and unloads. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.detach()
    this.#lastCounters = this.counters()
    this.#lastBacklog = this.backlog
    this.#closed = true
    this.#native.ringClose(this.#ring)
    this.object.close()
  }

  #bootstrap(): number {
    const link = this.object.attach(this.backend.bootstrap)
    const { bytes } = readIterator(this.#native, link, iteratorBytes)
    this.object.detach(this.backend.bootstrap)
    return bytes.length / svcSocket.size
  }

  #setClock(): void {
    const { monotonicNs, realtimeUs } = this.#native.clock()
    this.#clock?.set(monotonicNs, realtimeUs)
    this.#clockAt = performance.now()
  }

  /** Delivers the next records, for `DrainTurns`. */
  #batch(): number {
    if (performance.now() - this.#clockAt > clockMs) this.#setClock()
    const length = this.#native.ringDrain(this.#ring, this.#bytes)
    return length === 0 ? 0 : this.#read(length)
  }

  /** Discards pending records for lack of time, and counts their exchanges. */
  #skip(): void {
    let exchanges = 0
    for (let length = -1; length !== 0; ) {
      length = this.#native.ringDrain(this.#ring, this.#bytes)
      for (let at = 0; at < length; at += 8 + ((this.#words32[at >>> 2]! + 7) & ~7))
        if (this.#words32[(at + 8) >>> 2] === kind.exchange) exchanges++
    }
    if (exchanges > 0) this.#sink.skipped(exchanges)
  }

  /** Returns the time of the newest record; greater than 0. */
  #read(length: number): number {
    const words32 = this.#words32
    const words16 = this.#words16
    const bytes = this.#bytes
    const piece = this.#piece
    const sink = this.#sink
    const reader = this.#reader
    let timeAt = 0 // with only thread records, a record length is read as a very old time
    for (let at = 0; at < length; ) {
      const size = words32[at >>> 2]!
      const from = at + 8
      this.received++
      switch (words32[from >>> 2]) {
        case kind.exchange:
          if (size < svcRecord.size) break
          timeAt = (from + svcRecord.endNs) >>> 2
          sink.end(reader.record(bytes, words32, words16, from))
          break
        case kind.begin:
          if (size < svcRecord.size) break
          timeAt = (from + svcRecord.startNs) >>> 2
          sink.begin(reader.record(bytes, words32, words16, from))
          break
        case kind.segment:
          if (size < svcSegment.size) break
          timeAt = (from + svcSegment.timeNs) >>> 2
          reader.segment(piece, bytes, words32, words16, from)
          sink.segment(piece)
          break
        case kind.thread:
          if (size < svcThread.size) break
          sink.thread(
            words32[(from + svcThread.pid) >>> 2]!,
            words32[(from + svcThread.parent) >>> 2]!,
            words32[(from + svcThread.tid) >>> 2]!,
          )
          break
      }
      at += 8 + ((size + 7) & ~7)
    }
    const newestNs = 1 + words32[timeAt]! + words32[timeAt + 1]! * twoTo32
    if (newestNs > this.#newestNs) this.#newestNs = newestNs
    return newestNs
  }

  #countedOf(map: MapHandle, key: Buffer, value: Buffer): void {
    const id = key.toString('latin1')
    let known = this.#counted.get(id)
    if (known === undefined) {
      known = { seen: new Float64Array(svcRed.size / 8), idle: 0 }
      this.#counted.set(id, known)
    }
    const { seen } = known
    const delta = (offset: number): number => {
      const total = overCpus(value, offset)
      const change = total - seen[offset >> 3]!
      seen[offset >> 3] = total
      return change
    }
    const sumNs = delta(svcRed.sumNs)
    // A value read during a write may lack parts of the current call: the buckets define the number of calls, and the
    // rest of the sum is part of a later collection, even one without new calls.
    delta(svcRed.count)
    let count = 0
    for (let i = 0; i < this.#buckets.length; i++) {
      this.#buckets[i] = delta(svcRed.buckets + 8 * i)
      count += this.#buckets[i]!
    }
    if (count === 0 && sumNs === 0) {
      if (++known.idle < idleCollections) return
      // Reads it again: time has passed since the batch was read.
      if (
        this.#native.mapLookup(map, key, value) &&
        overCpus(value, svcRed.count) !== seen[svcRed.count >> 3]
      )
        return
      this.#counted.delete(id)
      this.#native.mapDelete(map, key)
      return
    }
    known.idle = 0
    this.#sink.counted(this.#reader.counted(key), count, sumNs, this.#buckets)
  }
}

/**
 * Begins to load the object of a capture with the same options. Returns its map `requests`, if it can be shared before
 * it is loaded.
 */
export function beginCapture(
  native: Native,
  backend: CaptureBackend,
  options: CaptureOptions,
): MapHandle | undefined {
  const file = backend.objectFor(options.captureBytes)
  let requests: MapHandle | undefined
  if (file !== undefined)
    beginLoad(native, file, {
      name: backend.name,
      prepare: object => {
        prepare(native, object, backend, options)
        requests = native.mapMake(object, 'requests')
      },
    })
  return requests
}

function prepare(
  native: Native,
  object: ObjectHandle,
  backend: CaptureBackend,
  options: CaptureOptions,
): void {
  const { again, layout, uprobes } = backend
  const { rodata } = layout
  const twice = maySkip(options.kernel)
  for (const map of ['scratch', 'parts']) native.objectSetMaxEntries(object, map, twice ? 6 : 4)
  for (const program of again) native.objectSetAutoload(object, program, twice)
  native.objectSetData(object, '.rodata', rodata.callsComeTwice, Uint8Array.of(Number(twice)))
  native.objectSetMaxEntries(object, 'ring', options.ringBytes)
  for (const program of uprobes) native.uprobePrepare(object, program)
  const set = (offset: number, size: 4 | 8, value: number) => {
    const bytes = Buffer.alloc(size)
    if (size === 8) bytes.writeBigUInt64LE(BigInt(Math.round(value)))
    else bytes.writeUIntLE(value, 0, size)
    native.objectSetData(object, '.rodata', offset, bytes)
  }
  set(rodata.captureBytes, 4, options.captureBytes)
  set(rodata.ringWakeupBytes, 8, options.ringBytes / 4)
  setOwnerSeeds(native, object, rodata.ownerSeeds)
  if (options.boundsNs.length * 8 !== rodata.svcBoundsNsSize) {
    throw new RangeError(
      `the BPF program has ${rodata.svcBoundsNsSize / 8} histogram bounds, not ${options.boundsNs.length}`,
    )
  }
  for (const [i, bound] of options.boundsNs.entries()) set(rodata.svcBoundsNs + 8 * i, 8, bound)
}

const kind = {
  exchange: svcKind.indexOf('exchange'),
  begin: svcKind.indexOf('begin'),
  segment: svcKind.indexOf('segment'),
  thread: svcKind.indexOf('thread'),
}

function protocolBits(names: readonly string[]): number {
  let bits = 0
  for (const name of names) bits |= 1 << (svcProtocol as readonly string[]).indexOf(name)
  return bits >>> 0
}

/** Writes a variable of the programs if it changes. */
function put<T extends number | bigint>(variable: { [index: number]: T }, value: T): void {
  if (variable[0] !== value) variable[0] = value
}

/** Number of a per-CPU `svc_red`, over all CPUs. */
function overCpus(value: Buffer, offset: number): number {
  let total = 0
  for (let at = offset; at < value.length; at += svcRed.size) total += u64(value, at)
  return total
}
