import { randomInt } from 'node:crypto'
import { closeSync, readFileSync } from 'node:fs'
import { ipText } from '../../foundation/lib/ip-text.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { u64 } from '../../foundation/lib/u64.ts'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import { Segment } from '../../foundation/model/stream.ts'
import { findAsset } from '../../kernel/assets.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'
import {
  rodata,
  svcKind,
  svcSegment,
  svcSyscallAddress,
  svcSyscallConnection,
  svcSyscallKind,
  svcSyscallSettings,
  svcSyscallState,
  svcSyscallSweep,
  svcThread,
} from '../../kernel/gen/syscalls.ts'
import { type MapHandle, mapType, type Native, type PollHandle } from '../../kernel/native.ts'
import { tracepointFields } from '../../kernel/tracepoints.ts'
import { Bell } from './bell.ts'
import type {
  Backlog,
  Capture,
  CaptureCounter,
  CaptureOptions,
  CaptureRules,
  CaptureSink,
  PerfBuffer,
} from './capture.ts'
import { DrainTurns } from './drain-turns.ts'
import { DrainedCapture } from './drained-capture.ts'
import { kernelCounters } from './kernel-counts.ts'
import { RecordReader } from './record-reader.ts'
import { blockedCalls } from './syscall-blocked.ts'
import { connectionBytes, connectionOf, fdOf, pidOf, SyscallConnections } from './syscall-connections.ts'
import { PerfRecords, type Records, RingRecords } from './syscall-records.ts'
import {
  prepareOwners,
  prepareTurns,
  type RingOwners,
  ringOwners,
  settingsBytes,
} from './syscall-settings.ts'
import { ProcSockets } from './syscall-sockets.ts'
import { openSyscallTls } from './syscall-tls.ts'
import type { TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/** Interval of clock comparisons: NTP adjusts the wall clock. */
const clockMs = 10_000
/** Maximum duration of pending records in `collect`. */
const collectMs = 25
/**
 * Maximum duration of the first search for open sockets without yielding: connections that are used before it ends are
 * unknown.
 */
const firstLookMs = 1_000
const lookMs = 2
/** Maximum duration of the final drain. */
const lastMs = 2_000
const twoTo32 = 4294967296
/** Descriptors that no process has: the kernel side takes the process that closes a chosen one as the agent. */
const firstMagic = 2 ** 30
/** Flag of `mapUpdate`. */
const onlyNew = 1
const kinds = {
  segment: svcKind.indexOf('segment'),
  thread: svcKind.indexOf('thread'),
  ...svcSyscallKind,
}

/** Objects for kernels with and without a ring buffer. */
const objects = { ring: 'syscalls.bpf.o', perf: 'perf/syscalls.bpf.o' } as const

export interface SyscallCaptureOptions extends CaptureOptions {
  /** Uses perf buffers even if there is a ring buffer. */
  readonly perf?: boolean
}

/** Captures by system call tracepoints: loads the programs, and completes their records from /proc. */
export class SyscallCapture extends DrainedCapture implements Capture {
  readonly backend: { readonly name: string }
  readonly ringSize: number
  /** Number of fetched records. */
  received = 0
  /** TCP sockets of other processes that were open at the start, listening ones included, found so far. */
  socketsFound = 0
  /** Resolves when all of them are found. */
  readonly bootstrapped: Promise<void>
  /** Number of this process on the kernel side; differs from `process.pid` in a PID namespace. */
  readonly selfPid: number
  /** Tracepoints that this kernel lacks. */
  readonly absent: readonly string[]
  readonly #native: Native
  /** Programs and maps. */
  readonly object: BpfObject
  readonly #sink: CaptureSink
  readonly #clock: WallClock | undefined
  readonly #records: Records
  readonly #poll: PollHandle | undefined
  protected readonly turns: DrainTurns
  readonly #reader = new RecordReader()
  readonly #segment = new Segment()
  readonly #sockets = new ProcSockets()
  readonly #connections = new SyscallConnections(this.#sockets, connection => this.#isOpen(connection))
  readonly #attached: string[] = []
  /** A bit per excluded port, as on the kernel side. */
  readonly #ports = new Uint32Array(2048)
  /** Key and value of `connections`. */
  readonly #key = Buffer.alloc(8)
  readonly #entry = Buffer.alloc(svcSyscallConnection.size)
  #clockAt = 0
  /** Records that the final drain had no time for. */
  #unread = 0
  #lastCounters: Record<CaptureCounter, number> | undefined
  readonly noRoom: Capture['noRoom']
  /** Undefined without a ring. */
  readonly #owners: RingOwners | undefined
  /** Programs that read inside TLS. */
  #inside: BpfObject | undefined
  #closed = false

  /**
   * Loads and attaches. Throws if the kernel rejects the programs (`LoadError`, or an error of the native boundary);
   * nothing remains loaded then.
   */
  constructor(
    native: Native,
    backend: { readonly name: string },
    options: SyscallCaptureOptions,
    sink: CaptureSink,
  ) {
    super()
    this.#native = native
    this.backend = backend
    this.#sink = sink
    this.#clock = options.clock
    try {
      native.bumpMemlock()
    } catch {
      // Only kernels before 5.11 count maps against the limit; they report it when they reject a map.
    }
    const perf = options.perf ?? native.probeMapType(mapType.ringbuf) !== 1
    const file = perf ? objects.perf : objects.ring
    this.noRoom = perf ? 'perf_full' : 'ring_full'
    this.#owners = perf ? undefined : ringOwners(native)
    const path = findAsset(file)
    if (path === undefined) throw new Error(`BPF object ${file} not found; run tools/setup`)
    this.object = BpfObject.load(native, readFileSync(path), {
      name: backend.name,
      prepare: object => {
        if (this.#owners) {
          native.objectSetMaxEntries(object, 'ring', options.ringBytes)
          prepareOwners(native, object, rodata, this.#owners)
        }
        prepareTurns(native, object, options.kernel)
      },
    })
    let records: Records | undefined
    let turns: DrainTurns | undefined
    try {
      this.#setClock()
      const ring = this.object.map('ring')
      records = perf
        ? new PerfRecords(native, ring, options.perfBytes)
        : new RingRecords(native, ring, options.backlogBytes)
      this.#records = records
      this.ringSize = records.size
      const magic = firstMagic + randomInt(2 ** 30)
      native.mapUpdate(this.object.map('settings'), words(0), settingsBytes(options, records.size, magic), 0)
      this.apply(options)
      this.absent = this.#attachAll()
      this.selfPid = this.#identifySelf(magic)
      // Sockets opened before the attachment; the programs know later ones better.
      this.bootstrapped = this.#runs(this.#bootstrap())
      const watch = {
        newest: () => this.received,
        bell: (rung: () => void) => new Bell(native, this.object, rung),
      }
      turns = new DrainTurns(() => this.#batch(), perf ? undefined : watch)
      this.turns = turns
      if (records.fd !== undefined) this.#poll = native.pollStart(records.fd, () => this.drain())
    } catch (error) {
      turns?.stop()
      records?.close()
      this.object.close()
      throw error
    }
  }

  readonly hasBudget = false

  get backlog(): Backlog {
    return this.#records.backlog
  }

  get perfBuffers(): readonly PerfBuffer[] {
    return this.#records.perfBuffers
  }

  limitBacklog(bytes: number): void {
    if (!this.#closed) this.#records.limitBacklog(bytes)
  }

  /** Delivers pending records. This back end counts nothing in the kernel alone. */
  collect(): void {
    this.turns.run(collectMs)
  }

  /** Counters of the kernel side, over all CPUs; the final values after the end. */
  counters(): Record<CaptureCounter, number> {
    if (this.#lastCounters !== undefined) return this.#lastCounters
    const counters = kernelCounters(this.#native, this.object)
    counters.segments_lost += this.#unread
    for (const { lost } of this.perfBuffers) counters.segments_lost += lost
    counters.sockets_found = this.socketsFound
    return counters
  }

  /** Applies new rules, as often as needed. Writes only differences. */
  apply(rules: CaptureRules): void {
    const wanted = new Uint32Array(this.#ports.length).fill(rules.includePorts.length > 0 ? 0xffff_ffff : 0)
    for (const port of rules.includePorts) wanted[port >>> 5]! &= ~(1 << (port & 31))
    for (const port of rules.excludePorts) wanted[port >>> 5]! |= 1 << (port & 31)
    wanted[0]! &= ~1 // connections without a known port
    const map = this.object.map('ports')
    for (const [index, bits] of wanted.entries()) {
      if (this.#ports[index] === bits) continue
      this.#ports[index] = bits
      this.#native.mapUpdate(map, words(index), words(bits), 0)
    }
  }

  /** Drops further bytes of a connection that turned out to be of another kind. */
  refuse(connection: number): void {
    if (this.#closed) return
    this.#connections.turnOff(connection)
    if (!this.#isOpen(connection)) return
    const entry = this.#entry
    entry[svcSyscallConnection.state] = svcSyscallState.indexOf('off')
    this.#native.mapUpdate(this.object.map('connections'), this.#key, entry, 0)
  }

  tls(options: TlsOptions): TlsProbes {
    const { selfPid } = this
    const owners = this.#owners
    if (owners === undefined) throw new Error('this kernel has no BPF ring buffer (since Linux 5.8)')
    const { object, probes } = openSyscallTls(this.object, { ...options, selfPid, owners })
    this.#inside = object
    return probes
  }

  /** Detaches, and delivers all records. */
  detach(): void {
    if (this.detached) return
    this.detached = true
    this.turns.stop()
    if (this.#poll !== undefined) this.#native.pollStop(this.#poll)
    for (const program of this.#attached) this.object.detach(program)
    const endMs = performance.now() + lastMs
    // Pending records are kept once, so a second pass takes them.
    for (let looks = 0; looks < 2 || (this.#records.more && performance.now() < endMs); looks++)
      this.#read(this.#records.take(true))
    while (this.#records.more) this.#unread += this.#records.take(true)
  }

  /** Detaches and unloads. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.detach()
    this.#lastCounters = this.counters()
    this.#closed = true
    this.#records.close()
    this.#inside?.close()
    this.object.close()
  }

  /** Delivers the next records, for `DrainTurns`. */
  #batch(): number {
    if (performance.now() - this.#clockAt > clockMs) this.#setClock()
    this.#read(this.#records.take(false))
    return this.#records.more ? this.#records.newestNs : 0
  }

  /** Reads the entry of a descriptor; false if it is no longer this connection. */
  #isOpen(connection: number): boolean {
    const entry = this.#entry
    const key = this.#key
    key.writeUInt32LE(pidOf(connection), 0)
    key.writeUInt32LE(fdOf(connection), 4)
    const found = this.#native.mapLookup(this.object.map('connections'), key, entry)
    return found && u64(entry, svcSyscallConnection.id) === connection
  }

  /** Attaches each program whose tracepoint exists. Returns the missing tracepoints. */
  #attachAll(): string[] {
    const absent: string[] = []
    for (const { name, section, autoload } of this.object.programs()) {
      if (!autoload) continue
      const tracepoint = section.replace(/^tracepoint\/?/, '')
      if (tracepoint === '') continue // a tail call target
      if (tracepointFields(tracepoint) === undefined) {
        absent.push(tracepoint)
        continue
      }
      this.object.attach(name)
      this.#attached.push(name)
    }
    return absent
  }

  /** Closes a descriptor that does not exist, which identifies the agent to the kernel side. */
  #identifySelf(magic: number): number {
    try {
      closeSync(magic)
    } catch {
      // It is not open.
    }
    const settings = Buffer.alloc(svcSyscallSettings.size)
    this.#native.mapLookup(this.object.map('settings'), words(0), settings)
    return settings.readUInt32LE(svcSyscallSettings.selfPid) || process.pid
  }

  *#bootstrap(): Generator<void> {
    const connections = this.object.map('connections')
    const calls = this.object.map('calls')
    const processes = new Set<number>()
    yield* this.#sockets.forEach((pid, fd, socket, side) => {
      if (pid === process.pid) return
      processes.add(pid)
      const connection = connectionOf(pid, fd, this.socketsFound++)
      this.#add(connections, words(pid, fd), connectionBytes(connection, socket, side))
    })
    for (const pid of processes)
      for (const call of blockedCalls(pid)) {
        if (call !== undefined) this.#add(calls, words(call.tid, pid), call.bytes)
        yield
      }
    this.#sockets.forget()
  }

  /** Runs for a while synchronously, where it may throw, then in turns. */
  #runs(steps: Generator<void>): Promise<void> {
    for (const first = new Turn(firstLookMs); !first.isOver; ) if (steps.next().done) return Promise.resolve()
    return this.#runsOn(steps)
  }

  async #runsOn(steps: Generator<void>): Promise<void> {
    const turn = new Turn(lookMs)
    try {
      do {
        if (turn.isOver) await turn.next()
        if (this.detached) steps.return(undefined)
      } while (!steps.next().done)
    } catch {
      // Sockets missed here are looked up when they are used.
    }
  }

  /** Adds an entry unless the kernel side has it. */
  #add(map: MapHandle, key: Buffer, value: Buffer): void {
    try {
      this.#native.mapUpdate(map, key, value, onlyNew)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }

  #setClock(): void {
    const { monotonicNs, realtimeUs } = this.#native.clock()
    this.#clock?.set(monotonicNs, realtimeUs)
    this.#clockAt = performance.now()
  }

  #read(count: number): void {
    const { words32, offsets } = this.#records
    this.#connections.begin()
    this.received += count
    // The ends of short connections are reported at shutdown, after their bytes.
    for (let i = 0; i < count; i++)
      if (words32[(offsets[i]! + 8) >>> 2] === kinds.address) this.#address(offsets[i]! + 8)
    for (let i = 0; i < count; i++) {
      const at = offsets[i]! + 8
      const size = words32[(at - 8) >>> 2]!
      switch (words32[at >>> 2]) {
        case kinds.segment:
          if (size >= svcSegment.size) this.#piece(at, i)
          break
        case kinds.thread:
          if (!this.#waits(words32[(at + svcThread.pid) >>> 2]!, i))
            this.#sink.thread(
              words32[(at + svcThread.pid) >>> 2]!,
              words32[(at + svcThread.parent) >>> 2]!,
              words32[(at + svcThread.tid) >>> 2]!,
            )
          break
        case kinds.sweep:
          if (!this.#waits(words32[(at + svcSyscallSweep.pid) >>> 2]!, i)) this.#sweep(at)
          break
      }
    }
  }

  /** Leaves the record for the next batch, after pending records of its process. */
  #waits(pid: number, index: number): boolean {
    return this.#connections.isLate(pid) && this.#records.keep(index)
  }

  #piece(at: number, index: number): void {
    const segment = this.#segment
    const { bytes, words32, words16 } = this.#records
    this.#reader.segment(segment, bytes, words32, words16, at)
    const verdict = this.#connections.complete(segment)
    if (verdict === 'later' && this.#records.keep(index)) return
    if (verdict === 'drop') {
      if (!segment.closed) this.refuse(segment.connection)
      return
    }
    const port = segment.server ? segment.localPort : segment.peerPort
    if (!segment.closed && (this.#ports[port >>> 5]! & (1 << (port & 31))) !== 0) return
    this.#sink.segment(segment)
  }

  #address(at: number): void {
    const { bytes, words32, words16 } = this.#records
    const low = words32[(at + svcSyscallAddress.connection) >>> 2]!
    const high = words32[(at + svcSyscallAddress.connection + 4) >>> 2]!
    const text = (from: number) => ipText(bytes.subarray(at + from, at + from + 16))
    this.#connections.report(low + high * twoTo32, {
      localAddress: text(svcSyscallAddress.localAddress),
      localPort: words16[(at + svcSyscallAddress.localPort) >>> 1]!,
      peerAddress: text(svcSyscallAddress.peerAddress),
      peerPort: words16[(at + svcSyscallAddress.peerPort) >>> 1]!,
    })
  }

  /** Handles closed descriptors of a process: ends its connections that were not closed one by one. */
  #sweep(at: number): void {
    const { words32 } = this.#records
    const pid = words32[(at + svcSyscallSweep.pid) >>> 2]!
    const first = words32[(at + svcSyscallSweep.first) >>> 2]!
    const last = words32[(at + svcSyscallSweep.last) >>> 2]!
    const segment = this.#segment
    let ending: boolean | undefined
    this.#connections.forEachOf(pid, first, last, connection => {
      // After exec(2) most descriptors are still open. So are those of an exiting process: kernels since 6.16 report
      // the exit before they close them.
      ending ??= this.#sockets.isEnding(pid)
      if (!ending && this.#sockets.find(pid, fdOf(connection)) !== 'gone') return
      segment.connection = connection
      segment.closed = true
      segment.errno = 0
      this.#sink.segment(segment)
      this.refuse(connection)
      this.#connections.forget(connection)
    })
  }
}

function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, 4 * i)
  return bytes
}
