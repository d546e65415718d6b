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
/** Interval at which CPUs change their rates. */
const rotateMs = 5_000
/** Page faults per sample. */
const faultPeriod = 100
const drainBytes = 128 * 1024
/** Maximum reads in one `drain`: twice the ring, so that it ends despite concurrent writes. */
const mostDrains = 16
const batchEntries = 256
const mostAsked = 4_096
const wordBytes = 4

/** Selection of samples. */
export interface StackSamplerOptions {
  /** Approximate samples per second and CPU; primes near it are used. */
  readonly sampleRate: number
  readonly cpu: boolean
  /** Page faults, where memory becomes resident. */
  readonly memory: boolean
  /** Waits of 1 ms and more. */
  readonly offCpu: boolean
  /** Kernel frames, if kernel code was running. */
  readonly includeKernel: boolean
}

export interface StackSamplerSettings extends StackSamplerOptions {
  /** Process to exclude, by its number in the first PID namespace. */
  readonly selfPid?: number
  /** Behaves as on a kernel that cannot unwind by tables. */
  readonly degraded?: boolean
  /** Request that each thread works on (`Capture.requests`); without it samples have no request. */
  readonly requests?: MapHandle
}

/** Counters since the start. */
export interface StackCounters {
  readonly samples: Readonly<Record<SampleKind, number>>
  /** Sampled CPU time and idle time, in nanoseconds. */
  readonly samplesNs: number
  readonly idleNs: number
  /** How the walks of user stacks ended. */
  readonly ends: Readonly<Record<StackEnd, number>>
  /** Stacks and questions without room in the ring; they are reported again at their next occurrence. */
  readonly ringFull: number
  /** Samples without a count, because there were 16,384 distinct ones. */
  readonly lost: Readonly<Record<SampleKind, number>>
  /**
   * Samples of a runtime without its own frames: the process executed another program, or another thread had the turn.
   */
  readonly otherMemory: number
  readonly otherThread: number
}

/**
 * Samples stacks of the whole host (bpf/profile.bpf.c): reports each distinct stack once, and counts. The unwind tables
 * are in memory shared with the kernel side; writers fill rows, rules, pages and the file, then publish it.
 */
export class StackSampler {
  /** Unwind tables. `files`: `fileWords.size` words per id. */
  readonly tables: {
    readonly rows: Uint32Array
    readonly pages: Uint32Array
    readonly rules: Uint8Array
    readonly files: Uint32Array
    /** Offsets of a file's fields, in words. */
    readonly fileWords: typeof fileWords
  }
  /** Why stacks are walked only by frame pointers and reported as addresses; undefined if they are not. */
  readonly degraded: string | undefined
  /** Milliseconds spent on delivery since the start, including the consumers. */
  busyMs = 0
  readonly #native: Native
  /** Programs and maps. */
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
  /** Kernel ids of the memory of processes with a reported runtime. */
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

  /** Loads and attaches. Throws if the kernel rejects the programs; nothing remains loaded then. */
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

  /** Changes the selection of samples immediately. Throws if the kernel rejects a kind; the others continue. */
  apply({ sampleRate, cpu, memory, offCpu, includeKernel }: StackSamplerOptions): void {
    if (this.#closed) return
    const before = this.#rates
    this.#rates = primesNear(Math.max(1, Math.round(sampleRate)))
    // The next sample of each CPU still has its old period.
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
   * Unwinds code of this file by the table with this id from now on. All zeros mean the vDSO. Throws if there are 8,192
   * files.
   */
  publish(file: FileIdentity, id: number): void {
    if (this.#closed) return
    this.#setInode(file)
    this.#id.writeUInt32LE(id)
    this.#native.mapUpdate(this.#inodes, this.#inode, this.#id, 0)
  }

  /** Call before the table of this file is removed. */
  unpublish(file: FileIdentity): void {
    if (this.#closed) return
    this.#setInode(file)
    this.#native.mapDelete(this.#inodes, this.#inode)
  }

  /**
   * Sets how to read the frames of a runtime in a process that was reported as `unknownRuntime`, until it executes
   * another program. Undefined: they cannot be read, and the process is not reported again.
   */
  setRuntime(pid: number, settings: RuntimeSettings | undefined): void {
    const memory = this.#memories.get(pid)
    if (this.#closed || memory === undefined) return
    const key = Buffer.alloc(4)
    key.writeUInt32LE(pid)
    this.#native.mapUpdate(this.object.map('processes'), key, processOf(memory, settings), 0)
  }

  /** Reports all processes with a runtime again. */
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

  /** Reports all stacks again at their next occurrence. */
  forgetStacks(): void {
    if (this.#closed) return
    this.#begin(bss.epoch)
  }

  /** Delivers pending stacks, files and runtimes. Runs automatically for files and runtimes. */
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

  /** Delivers the counts since the last call, new stacks first. */
  collect(visit: (count: StackCount) => void): void {
    if (this.#closed) return
    const beganMs = performance.now()
    const full = this.#globals.getUint32(bss.active, true)
    // Programs that are running may still write to the buffer that is read; those counts come with the call after next.
    this.#globals.setUint32(bss.active, 1 - full, true)
    this.#drainAll()
    // An empty table costs as much as a full one: the kernel looks at all of its 16,384 buckets.
    const counted = bss.counted + wordBytes * full
    if (this.#globals.getUint32(counted, true) === 0) return
    this.#globals.setUint32(counted, 0, true)
    const map = this.object.map(full === 0 ? 'counts_even' : 'counts_odd')
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) {
      const read = this.#native.mapReadBatch(map, cursor, this.#keys, this.#values, true)
      for (let i = 0; i < read; i++) this.#visit(i, visit)
    }
    this.busyMs += performance.now() - beganMs
  }

  /** Final values after the end. */
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

  /** Kernel memory of the maps in bytes. */
  get mapBytes(): number {
    if (this.#closed) return 0
    return this.#native
      .objectMaps(this.object.handle)
      .reduce((total, { name }) => total + this.#bytesOf(name), 0)
  }

  /** Detaches and unloads. Idempotent. */
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

  /** Clears the table of the old build: current waits will have no end. */
  #forgetWaits(): void {
    const map = this.object.map('waits')
    const keys = Buffer.alloc(batchEntries * map.keySize)
    const values = Buffer.alloc(batchEntries * map.slotSize)
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) this.#native.mapReadBatch(map, cursor, keys, values, true)
    new Uint8Array(this.#native.mapView(this.object.map('.bss.old'))).fill(0)
  }

  /** Invalidates what the kernel side noted in the previous turn. */
  #begin(turn: number): void {
    this.#globals.setUint32(turn, (this.#globals.getUint32(turn, true) + 1) >>> 0, true)
  }

  /** Gives each CPU another rate; each CPU has all of them in turn. */
  #rotate(): void {
    this.#turn++
    this.#expectRates(this.#rates)
    for (const kind of eventKinds) {
      if (this.#events[kind].size === 0) continue
      try {
        this.#events[kind].follow()
      } catch {
        // Out of memory or descriptors: the other CPUs continue, and this one is retried next time.
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

  /** Size by the kernel's accounting (fdinfo, `memlock`). */
  #bytesOf(map: string): number {
    try {
      const text = readFileSync(`/proc/self/fdinfo/${this.object.map(map).fd}`, 'latin1')
      return Number(/^memlock:\s*(\d+)/m.exec(text)?.[1] ?? 0)
    } catch {
      return 0 // unknown without /proc
    }
  }
}

/** Offsets of the fields of a file's entry, in words. */
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
