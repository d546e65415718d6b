import { constants } from 'node:os'
import { Interner } from '../../foundation/lib/interner.ts'
import { counted, small } from '../../foundation/lib/small-tables.ts'
import { SyscallNames } from '../../foundation/lib/syscall-names.ts'
import { u64 } from '../../foundation/lib/u64.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { DurationDesc } from '../../foundation/model/call.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { bss, rodata, svcSyscall, svcSyscallKey } from '../../kernel/gen/syscount.ts'
import { type Build, loadObject } from '../../kernel/load-object.ts'
import { batchCursor, batchDone, type MapHandle, type Native } from '../../kernel/native.ts'

/** The end of a call is attached first, so that no call lacks it. */
const programs: Readonly<Record<Build, readonly string[]>> = {
  new: ['svc_syscall_exit', 'svc_syscall_enter'],
  old: ['svc_syscall_gone', 'svc_syscall_exit', 'svc_syscall_enter'],
}
const batchEntries = 64
/** Unchanged looks after which a series is removed from the kernel. */
const idleLooks = 4
const bucketCount = svcSyscall.bucketsSize / 4
/** 2^10 ns: bound of the kernel's first bucket. */
const firstBoundNs = 1024
const twoTo32 = 4294967296

/** Histogram of all system calls: bounds double from 1 µs to 4 s. */
export const syscallDuration: DurationDesc = {
  name: 'svc.syscall.duration',
  description: 'Durations of system calls, waiting included.',
  bounds: Array.from({ length: bucketCount - 1 }, (_, i) => (firstBoundNs * 2 ** i) / 1e9),
}

/** Attributes of its series. */
export const syscallDimensions: readonly string[] = ['syscall.name', 'error.type']

/** Counted system calls, by their names on this architecture. */
export interface SyscallFilter {
  /** Empty: all. */
  readonly include: readonly string[]
  /** Has precedence over `include`. */
  readonly exclude: readonly string[]
}

/** Receives the calls of one process with one outcome since the last look. The arguments are reused. */
export type SyscallSink = (
  pid: number,
  comm: string,
  dimensions: Attributes,
  count: number,
  sumNs: number,
  /** By `syscallDuration`. */
  buckets: Float64Array,
) => void

/** A series, identified by the bytes of its key. */
interface Known {
  readonly dimensions: Attributes
  /** Buckets, then the sum, over all CPUs, at the last look. */
  readonly seen: Float64Array
  idle: number
  look: number
}

/** Memory of a series: key, names and numbers. */
const knownBytes = 1_200

/**
 * System calls by process, counted in the kernel (bpf/syscount.bpf.c). Adds about 0.2 µs to every system call of every
 * process, and another 0.2 µs to each counted one; hence off by default.
 */
export class SyscallCounts {
  /** Names of the filter that this architecture lacks. */
  unknown: readonly string[] = []
  readonly #native: Native
  readonly #object: BpfObject
  readonly #names = new SyscallNames()
  readonly #map: MapHandle
  readonly #globals: ArrayBuffer
  readonly #known = new Map<string, Known>()
  readonly #words = small(new Interner({ slots: 1024, maxLength: 16 }))
  readonly #buckets = new Float64Array(bucketCount)
  readonly #keys = Buffer.alloc(batchEntries * svcSyscallKey.size)
  readonly #values: Buffer
  readonly #spare: Buffer
  #looks = 0
  #closed = false

  /**
   * Loads and attaches. Throws if the kernel rejects the programs; nothing remains loaded then. `selfPid`: this process
   * in the first PID namespace; its own calls are not counted.
   */
  constructor(native: Native, filter: SyscallFilter, selfPid: number) {
    this.#native = native
    counted(this)
    const self = new Uint8Array(Uint32Array.of(selfPid).buffer)
    const { object, build } = loadObject(native, 'syscount', {
      prepare: handle => native.objectSetData(handle, '.rodata', rodata.selfPid, self),
    })
    this.#object = object
    try {
      this.#globals = native.mapView(this.#object.map('.bss'))
      this.#map = this.#object.map('syscalls')
      this.#values = Buffer.alloc(batchEntries * this.#map.slotSize)
      this.#spare = Buffer.alloc(this.#map.slotSize)
      this.apply(filter)
      for (const program of programs[build]) this.#object.attach(program)
    } catch (error) {
      this.#object.close()
      throw error
    }
  }

  /** Sets the counted calls, as often as needed. */
  apply({ include, exclude }: SyscallFilter): void {
    const words = new BigUint64Array(bss.wantedSize / 8).fill(include.length === 0 ? ~0n : 0n)
    const unknown: string[] = []
    const set = (name: string, on: boolean) => {
      const number = this.#names.number(name)
      if (number === undefined || number >= words.length * 64) {
        unknown.push(name)
        return
      }
      const bit = 1n << BigInt(number % 64)
      const word = Math.floor(number / 64)
      words[word] = on ? words[word]! | bit : words[word]! & ~bit
    }
    for (const name of include) set(name, true)
    for (const name of exclude) set(name, false)
    this.unknown = unknown
    const wanted = new BigUint64Array(this.#globals, bss.wanted, words.length)
    for (const [i, word] of words.entries()) if (wanted[i] !== word) wanted[i] = word
  }

  /** Delivers the calls since the last time. */
  collect(take: SyscallSink): void {
    if (this.#closed) return
    this.#looks++
    const keys = this.#keys
    const values = this.#values
    const map = this.#map
    const cursor = batchCursor(map)
    while (!batchDone(cursor)) {
      const n = this.#native.mapReadBatch(map, cursor, keys, values, false)
      for (let i = 0; i < n; i++) this.#look(i * svcSyscallKey.size, i * map.slotSize, take)
    }
  }

  /** Calls that are not counted, because there were 8,192 series or no memory. */
  get lost(): number {
    return this.#closed ? 0 : Number(new BigUint64Array(this.#globals, bss.lost, 1)[0])
  }

  /** Memory of the known series, at most the size of the kernel's table. */
  get bytes(): number {
    return this.#known.size * knownBytes
  }

  /** Number of known series, with recent calls. */
  get size(): number {
    return this.#known.size
  }

  /** Detaches and unloads. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#object.close()
  }

  #look(keyAt: number, at: number, take: SyscallSink): void {
    const keys = this.#keys
    const values = this.#values
    const map = this.#map
    const id = keys.toString('latin1', keyAt, keyAt + svcSyscallKey.size)
    let known = this.#known.get(id)
    if (known === undefined) {
      known = this.#add(id, keyAt)
    } else if (known.look === this.#looks) return // repeated, as the table changed concurrently
    known.look = this.#looks
    const { count, sumNs } = this.#grown(known.seen, values, at)
    if (count === 0 && sumNs === 0) {
      this.#rest(id, known)
      return
    }
    known.idle = 0
    const pid = keys.readUInt32LE(keyAt + svcSyscallKey.pid)
    take(
      pid,
      this.#commOf(values, at, at + map.slotSize),
      known.dimensions,
      count,
      Math.max(0, sumNs),
      this.#buckets,
    )
  }

  #add(id: string, keyAt: number): Known {
    const keys = this.#keys
    const error = keys.readUInt16LE(keyAt + svcSyscallKey.error)
    const dimensions = Attributes.of({
      'syscall.name': this.#names.name(keys.readUInt16LE(keyAt + svcSyscallKey.nr)),
      ...(error !== 0 && { 'error.type': errnoNames.get(error) ?? `errno_${error}` }),
    })
    const known: Known = {
      dimensions,
      seen: new Float64Array(bucketCount + 1),
      idle: 0,
      look: 0,
    }
    this.#known.set(id, known)
    return known
  }

  /**
   * Sets `buckets` to the differences, over all CPUs. The buckets define the number of calls: a value may be read
   * during a write, and the rest of the sum is then part of a later look.
   */
  #grown(seen: Float64Array, values: Buffer, at: number): { count: number; sumNs: number } {
    const buckets = this.#buckets
    const { slotSize } = this.#map
    const total = sumOf(values, at, slotSize)
    const sumNs = total - seen[bucketCount]!
    seen[bucketCount] = total
    let count = 0
    for (let i = 0; i < bucketCount; i++) {
      let times = 0
      for (let from = at + svcSyscall.buckets + 4 * i; from < at + slotSize; from += svcSyscall.size)
        times += values.readUInt32LE(from)
      // The counter of one CPU may have wrapped.
      const change = times < seen[i]! ? times - seen[i]! + twoTo32 : times - seen[i]!
      seen[i] = times
      buckets[i] = change
      count += change
    }
    return { count, sumNs }
  }

  #commOf(values: Buffer, at: number, until: number): string {
    for (let from = at + svcSyscall.comm; from < until; from += svcSyscall.size) {
      let end = from
      while (end < from + svcSyscall.commSize && values[end] !== 0) end++
      if (end > from) return this.#words.intern(values, from, end)
    }
    return ''
  }

  #rest(id: string, known: Known): void {
    if (++known.idle < idleLooks) return
    // Reads it again: time has passed since the batch was read.
    const key = Buffer.from(id, 'latin1')
    if (this.#native.mapLookup(this.#map, key, this.#spare)) {
      if (sumOf(this.#spare, 0, this.#spare.length) !== known.seen[bucketCount]) return
      this.#native.mapDelete(this.#map, key)
    }
    this.#known.delete(id)
  }
}

const errnoNames = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]))
// Of two names for the same number, the one in the manual pages.
errnoNames.set(constants.errno.EAGAIN, 'EAGAIN')

/** Sum of the durations, over all CPUs. */
function sumOf(values: Buffer, at: number, slotSize: number): number {
  let total = 0
  for (let from = at + svcSyscall.sumNs; from < at + slotSize; from += svcSyscall.size)
    total += u64(values, from)
  return total
}
