import { readFileSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { Interner } from '../../foundation/lib/interner.ts'
import { pageSizeBytes } from '../../foundation/lib/page-size.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import { u64 } from '../../foundation/lib/u64.ts'
import {
  type FileIdentity,
  type RuntimeSettings,
  type SampleKind,
  type StackCount,
  type StackEnd,
  type StackSink,
  stackEnds,
} from '../../foundation/model/raw-stack.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import {
  bss,
  svcCount,
  svcCountKey,
  svcInode,
  svcProfileProcess,
  svcSampleKind,
  svcUnwindFile,
} from '../../kernel/gen/profile.ts'
import type { Build } from '../../kernel/load-object.ts'
import {
  batchCursor,
  batchDone,
  type MapHandle,
  type Native,
  type PollHandle,
  type RingHandle,
} from '../../kernel/native.ts'
import { CpuEvents, periodNs, primesNear, softwareEvent } from './stack-events.ts'
import { loadStackObject, offCpuProgram } from './stack-object.ts'
import { commAt, readStackRecord } from './stack-records.ts'

const eventKinds = ['cpu', 'memory'] as const
/** How often CPUs change their rates. */
const rotateMs = 5_000
/** Page faults for one sample. */
const faultPeriod = 100
const drainBytes = 128 * 1024
/** Of one call of `drain`: the ring twice, so that it ends though others write on. */
const mostDrains = 16
const batchEntries = 256
const mostAsked = 4_096
const wordBytes = 4

/** What is sampled. */
export interface StackSamplerOptions {
  /** Samples a second on each CPU, about: primes near it. */
  readonly sampleRate: number
  readonly cpu: boolean
  /** Page faults: what makes memory resident. */
  readonly memory: boolean
  /** Waits of 1 ms and more. */
  readonly offCpu: boolean
  /** Frames of the kernel, where that is what ran. */
  readonly includeKernel: boolean
}

export interface StackSamplerSettings extends StackSamplerOptions {
  /** A process of which nothing is told, as the first pid namespace numbers it. */
  readonly selfPid?: number
  /** As on a kernel that cannot walk by tables. */
  readonly degraded?: boolean
  /** Which request each thread works on (`Capture.requests`); without it samples name none. */
  readonly requests?: MapHandle
}

/** Since the start. */
export interface StackCounters {
  readonly samples: Readonly<Record<SampleKind, number>>
  /** Nanoseconds of CPU time that were sampled, and of time in which CPUs were idle. */
  readonly samplesNs: number
  readonly idleNs: number
  /** How walks up stacks of user space ended. */
  readonly ends: Readonly<Record<StackEnd, number>>
  /** Stacks and questions that found no room in the ring: each is told again when it is next met. */
  readonly ringFull: number
  /** Samples that are in no count, because there were 16,384 distinct ones. */
  readonly lost: Readonly<Record<SampleKind, number>>
  /** Samples of a runtime without its own frames: the process runs another program by now; another thread's turn. */
  readonly otherMemory: number
  readonly otherThread: number
}

/**
 * Stacks of the whole host (bpf/profile.bpf.c): tells each distinct one once, and counts. The tables by which stacks are
 * walked lie in memory that both sides see; whoever fills them writes rows, rules, pages and the file, then publishes it.
 */
export class StackSampler {
  /** The unwind tables. `files`: `fileWords.size` words for each id. */
  readonly tables: {
    readonly rows: Uint32Array
    readonly pages: Uint32Array
    readonly rules: Uint8Array
    readonly files: Uint32Array
    /** Places of a file's fields, in words. */
    readonly fileWords: typeof fileWords
  }
  /** Why stacks are walked by frame pointers only, and told as addresses; undefined: they are not. */
  readonly degraded: string | undefined
  /** Milliseconds since the start in which samples were handed on, with what others do of them. */
  busyMs = 0
  readonly #native: Native
  /** Its programs and maps. */
  readonly object: BpfObject
  readonly #build: Build
  readonly #sink: StackSink
  readonly #globals: DataView
  readonly #ring: RingHandle
  readonly #poll: PollHandle
  readonly #timer: NodeJS.Timeout
  readonly #bytes = Buffer.alloc(drainBytes)
  readonly #inodes: MapHandle
  readonly #inode = Buffer.alloc(svcInode.size)
  readonly #id = Buffer.alloc(4)
  readonly #comms = small(new Interner({ slots: 1024, maxLength: 16 }))
  readonly #keys = Buffer.alloc(batchEntries * svcCountKey.size)
  readonly #values = Buffer.alloc(batchEntries * svcCount.size)
  /** What the kernel calls the memory of processes whose runtime it asked about. */
  readonly #memories = small(new BoundedMap<number, bigint>(mostAsked))
  readonly #count: StackCount = {
    kind: 'cpu',
    pid: 0,
    comm: '',
    userHash: 0,
    kernelHash: 0,
    request: 0,
    count: 0,
    value: 0,
  }
  readonly #events: Record<(typeof eventKinds)[number], CpuEvents>
  #rates: readonly number[] = []
  #turn = 0
  #notesWaits = false
  #closed = false
  #lastCounters: StackCounters | undefined

  /** Loads and attaches. Throws where the kernel refuses; nothing of it stays in the kernel then. */
  constructor(native: Native, settings: StackSamplerSettings, sink: StackSink) {
    this.#native = native
    this.#sink = sink
    const { object, build, degraded } = loadStackObject(native, settings.degraded, settings.requests)
    this.object = object
    this.#build = build
    this.degraded = degraded
    let ring: RingHandle | undefined
    let poll: PollHandle | undefined
    const suffix = degraded === undefined ? '' : '_plain'
    const events = (kind: (typeof eventKinds)[number], event: number, periodOf: (cpu: number) => number) =>
      new CpuEvents(object, `svc_profile_${kind}${suffix}`, event, periodOf)
    this.#events = {
      cpu: events('cpu', softwareEvent.cpuClock, cpu => periodNs(this.#rateOf(cpu))),
      memory: events('memory', softwareEvent.pageFaults, () => faultPeriod),
    }
    try {
      const memory = native.mapView(object.map('.bss'))
      this.#globals = new DataView(memory)
      this.tables = tablesOf(
        memory,
        build === 'old'
          ? new Uint32Array(native.mapView(object.map('rows')))
          : new Uint32Array(memory, bss.rows, bss.rowsSize / wordBytes),
      )
      this.#inodes = object.map('inodes')
      this.#globals.setUint32(bss.selfPid, settings.selfPid ?? 0, true)
      this.#globals.setBigUint64(bss.pageBytes, BigInt(pageSizeBytes()), true)
      ring = native.ringOpen(object.map('ring'))
      this.#ring = ring
      poll = native.pollStart(object.map('ring').fd, () => this.drain())
      this.#poll = poll
      this.apply(settings)
      this.#timer = setInterval(() => this.#rotate(), rotateMs)
      this.#timer.unref()
    } catch (error) {
      for (const kind of eventKinds) this.#events[kind].close()
      if (poll !== undefined) native.pollStop(poll)
      if (ring !== undefined) native.ringClose(ring)
      object.close()
      throw error
    }
  }

  /** Changes what is sampled, at once. Throws where the kernel refuses to begin with a kind; the others go on. */
  apply({ sampleRate, cpu, memory, offCpu, includeKernel }: StackSamplerOptions): void {
    if (this.#closed) return
    const before = this.#rates
    this.#rates = primesNear(Math.max(1, Math.round(sampleRate)))
    // The next sample of each CPU ends a period of the rates before.
    this.#expectRates([...before, ...this.#rates])
    this.#globals.setUint32(bss.includeKernel, includeKernel ? 1 : 0, true)
    if (this.#events.cpu.size === 0) this.#begin(bss.cpuTurn)
    let refused: { error: unknown } | undefined
    for (const [kind, wanted] of [
      ['cpu', cpu],
      ['memory', memory],
    ] as const) {
      try {
        if (wanted) this.#events[kind].follow()
        else this.#events[kind].close()
      } catch (error) {
        refused ??= { error }
      }
    }
    this.#setOffCpu(offCpu)
    if (refused !== undefined) throw refused.error
  }

  /**
   * From now on code of this file is unwound by the table with this id. All zeros are the vDSO.
   * Throws when there are 8,192 files.
   */
  publish(file: FileIdentity, id: number): void {
    if (this.#closed) return
    this.#setInode(file)
    this.#id.writeUInt32LE(id)
    this.#native.mapUpdate(this.#inodes, this.#inode, this.#id, 0)
  }

  /** The table of this file is about to go. */
  unpublish(file: FileIdentity): void {
    if (this.#closed) return
    this.#setInode(file)
    this.#native.mapDelete(this.#inodes, this.#inode)
  }

  /**
   * How frames of a runtime are read in a process that was told of as `unknownRuntime`, as long as it runs the program
   * that it ran then. Undefined: they cannot be, and it is not told of again.
   */
  setRuntime(pid: number, settings: RuntimeSettings | undefined): void {
    const memory = this.#memories.get(pid)
    if (this.#closed || memory === undefined) return
    const key = Buffer.alloc(4)
    key.writeUInt32LE(pid)
    this.#native.mapUpdate(this.object.map('processes'), key, processOf(memory, settings), 0)
  }

  /** All processes with a runtime are told of again. */
  forgetRuntimes(): void {
    if (this.#closed) return
    const processes = this.object.map('processes')
    const key = Buffer.alloc(4)
    this.#memories.forEach((_memory, pid) => {
      key.writeUInt32LE(pid)
      this.#native.mapDelete(processes, key)
    })
    this.#memories.clear()
  }

  /** All stacks are told again when they are next met. */
  forgetStacks(): void {
    if (this.#closed) return
    this.#begin(bss.epoch)
  }

  /** Tells of stacks, files and runtimes that wait. Is called by itself when one of them is urgent. */
  drain(): void {
    const beganMs = performance.now()
    this.#drainAll()
    this.busyMs += performance.now() - beganMs
  }

  #drainAll(): void {
    const bytes = this.#bytes
    for (let i = 0; i < mostDrains && !this.#closed; i++) {
      const length = this.#native.ringDrain(this.#ring, bytes)
      if (length === 0) return
      for (let at = 0; at < length; ) {
        const size = bytes.readUInt32LE(at)
        readStackRecord(bytes, at + 8, size, this.#sink, this.#comms, this.#keepMemory)
        at += 8 + ((size + 7) & ~7)
      }
    }
  }

  /** Hands over what was counted since the last call; stacks that are new are told before. */
  collect(visit: (count: StackCount) => void): void {
    if (this.#closed) return
    const beganMs = performance.now()
    const full = this.#globals.getUint32(bss.active, true)
    // Programs that run at this moment may still write to the one that is read: that comes with the call after next.
    this.#globals.setUint32(bss.active, 1 - full, true)
    this.#drainAll()
    const map = this.object.map(full === 0 ? 'counts_even' : 'counts_odd')
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) {
      const read = this.#native.mapReadBatch(map, cursor, this.#keys, this.#values, true)
      for (let i = 0; i < read; i++) this.#visit(i, visit)
    }
    this.busyMs += performance.now() - beganMs
  }

  /** After the end: what was counted until then. */
  counters(): StackCounters {
    if (this.#lastCounters !== undefined) return this.#lastCounters
    return {
      samples: this.#byName(svcSampleKind, bss.samples),
      samplesNs: this.#number(bss.samplesNs),
      idleNs: this.#number(bss.idleNs),
      ends: this.#byName(stackEnds, bss.ends),
      ringFull: this.#number(bss.ringFull),
      lost: this.#byName(svcSampleKind, bss.countsFull),
      otherMemory: this.#number(bss.otherMemory),
      otherThread: this.#number(bss.otherThread),
    }
  }

  /** Bytes of kernel memory that the maps take. */
  get mapBytes(): number {
    if (this.#closed) return 0
    return this.#native
      .objectMaps(this.object.handle)
      .reduce((total, { name }) => total + this.#bytesOf(name), 0)
  }

  /** Detaches and unloads. May be called again. */
  close(): void {
    if (this.#closed) return
    this.#lastCounters = this.counters()
    this.#closed = true
    clearInterval(this.#timer)
    for (const kind of eventKinds) this.#events[kind].close()
    this.#native.pollStop(this.#poll)
    this.#native.ringClose(this.#ring)
    this.object.close()
  }

  readonly #keepMemory = (pid: number, memory: bigint): void => this.#memories.set(pid, memory)

  #setOffCpu(wanted: boolean): void {
    if (!wanted) {
      this.object.detach(offCpuProgram)
      if (this.#notesWaits && this.#build === 'old') this.#forgetWaits()
      this.#notesWaits = false
    } else if (!this.#notesWaits && this.degraded === undefined && !this.object.leftOut.has(offCpuProgram)) {
      this.#begin(bss.waitsTurn)
      this.object.attach(offCpuProgram)
      this.#notesWaits = true
    }
  }

  /** Of the table that the old build has: who waits now will not be seen to wake. */
  #forgetWaits(): void {
    const map = this.object.map('waits')
    const keys = Buffer.alloc(batchEntries * map.keySize)
    const values = Buffer.alloc(batchEntries * map.slotSize)
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) this.#native.mapReadBatch(map, cursor, keys, values, true)
    new Uint8Array(this.#native.mapView(this.object.map('.bss.old'))).fill(0)
  }

  /** What the kernel side noted in a turn before counts no more. */
  #begin(turn: number): void {
    this.#globals.setUint32(turn, (this.#globals.getUint32(turn, true) + 1) >>> 0, true)
  }

  /** Each CPU has another rate, and each has all of them in turn. */
  #rotate(): void {
    this.#turn++
    this.#expectRates(this.#rates)
    for (const kind of eventKinds) {
      if (this.#events[kind].size === 0) continue
      try {
        this.#events[kind].follow()
      } catch {
        // Memory or descriptors are short: the CPUs that run go on, and the others are tried again next time.
      }
    }
  }

  #expectRates(rates: readonly number[]): void {
    this.#globals.setBigUint64(bss.periodNs, BigInt(periodNs(Math.min(...rates))), true)
  }

  #rateOf(cpu: number): number {
    return this.#rates[(cpu + this.#turn) % this.#rates.length]!
  }

  #setInode({ dev, inode, generation }: FileIdentity): void {
    this.#inode.writeBigUInt64LE(BigInt(inode), svcInode.inode)
    this.#inode.writeUInt32LE(dev, svcInode.dev)
    this.#inode.writeUInt32LE(generation, svcInode.generation)
  }

  #visit(index: number, visit: (count: StackCount) => void): void {
    const keys = this.#keys
    const values = this.#values
    const count = this.#count
    const key = index * svcCountKey.size
    const value = index * svcCount.size
    const kind = svcSampleKind[keys.readUInt32LE(key + svcCountKey.kind)]
    if (kind === undefined) return
    count.kind = kind
    count.pid = keys.readUInt32LE(key + svcCountKey.pid)
    count.comm = commAt(keys, key + svcCountKey.comm, this.#comms)
    count.userHash = u64(keys, key + svcCountKey.user)
    count.kernelHash = u64(keys, key + svcCountKey.kernel)
    count.request = u64(keys, key + svcCountKey.request)
    count.count = u64(values, value + svcCount.count)
    count.value = u64(values, value + svcCount.value)
    visit(count)
  }

  #number(at: number): number {
    return this.#globals.getUint32(at, true) + this.#globals.getUint32(at + 4, true) * 4294967296
  }

  #byName<Name extends string>(names: readonly Name[], at: number): Record<Name, number> {
    const counts = {} as Record<Name, number>
    for (const [index, name] of names.entries()) counts[name] = this.#number(at + 8 * index)
    return counts
  }

  /** As the kernel accounts for it (fdinfo, `memlock`). */
  #bytesOf(map: string): number {
    try {
      const text = readFileSync(`/proc/self/fdinfo/${this.object.map(map).fd}`, 'latin1')
      return Number(/^memlock:\s*(\d+)/m.exec(text)?.[1] ?? 0)
    } catch {
      return 0 // no /proc: nothing is known then
    }
  }
}

/** Places of the fields of a file's entry, in words. */
const fileWords = {
  size: svcUnwindFile.size / wordBytes,
  firstPage: svcUnwindFile.firstPage / wordBytes,
  pages: svcUnwindFile.pages / wordBytes,
  firstRow: svcUnwindFile.firstRow / wordBytes,
  rows: svcUnwindFile.rows / wordBytes,
  runtime: svcUnwindFile.runtime / wordBytes,
  used: svcUnwindFile.used / wordBytes,
} as const

function tablesOf(memory: ArrayBuffer, rows: Uint32Array): StackSampler['tables'] {
  return {
    rows,
    pages: new Uint32Array(memory, bss.pages, bss.pagesSize / wordBytes),
    rules: new Uint8Array(memory, bss.rules, bss.rulesSize),
    files: new Uint32Array(memory, bss.files, bss.filesSize / wordBytes),
    fileWords,
  }
}

function processOf(memory: bigint, { v8Shared = 0, python }: RuntimeSettings = {}): Buffer {
  const value = Buffer.alloc(svcProfileProcess.size)
  value.writeBigUInt64LE(memory, svcProfileProcess.mm)
  value.writeUInt32LE(v8Shared, svcProfileProcess.v8Shared)
  if (python === undefined) return value
  value.writeBigUInt64LE(BigInt(python.runtime), svcProfileProcess.pythonRuntime)
  value.writeUInt32LE(python.currentThread, svcProfileProcess.pythonCurrentThread)
  value.writeUInt32LE(python.nativeThreadId, svcProfileProcess.pythonNativeThreadId)
  value.writeUInt32LE(python.frameHolder, svcProfileProcess.pythonFrameHolder)
  value.writeInt32LE(python.frameInHolder, svcProfileProcess.pythonFrameInHolder)
  value.writeUInt32LE(python.code, svcProfileProcess.pythonCode)
  value.writeUInt32LE(python.previous, svcProfileProcess.pythonPrevious)
  value.writeUInt32LE(python.entry, svcProfileProcess.pythonEntry)
  return value
}
