import { closeSync, readFileSync, readSync } from 'node:fs'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import type { LinkHandle } from '../../kernel/native.ts'

/** `enum perf_sw_ids` of linux/perf_event.h. */
export const softwareEvent = { cpuClock: 0, pageFaults: 2 } as const

/** `struct perf_event_attr`: its first version, and the flags after it. */
const attributes = { size: 64, type: 0, config: 8, samplePeriod: 16, readFormat: 32, flags: 40 } as const
const typeSoftware = 1
const flagDisabled = 1n
/** PERF_FORMAT_TOTAL_TIME_ENABLED: read(2) returns the count, then the nanoseconds for which it was enabled. */
const formatTimeEnabled = 1n
/** _IOW('$', 4, __u64) */
const setPeriod = 0x40082404
const onlineCpus = '/sys/devices/system/cpu/online'
/** More than kernels support. */
const mostCpus = 8_192

interface Opened {
  readonly fd: number
  readonly link: LinkHandle
  period: number
  /** Enabled time at the last check. */
  countedNs: bigint
}

/** A program on one software event of every online CPU. */
export class CpuEvents {
  readonly #object: BpfObject
  readonly #program: string
  readonly #event: number
  readonly #read = Buffer.alloc(16)
  readonly #opened = new Map<number, Opened>()
  readonly #periodOf: (cpu: number) => number

  /** Starts with `follow`. `periodOf`: events, or nanoseconds, per sample on a CPU. */
  constructor(object: BpfObject, program: string, event: number, periodOf: (cpu: number) => number) {
    this.#object = object
    this.#program = program
    this.#event = event
    this.#periodOf = periodOf
  }

  /** Number of CPUs. */
  get size(): number {
    return this.#opened.size
  }

  /**
   * Adds CPUs that came online, closes those that went offline, even briefly, and sets the periods of the others.
   * Throws if the kernel rejects all of them.
   */
  follow(): void {
    const online = cpusOnline()
    for (const [cpu, event] of this.#opened) {
      if (online.includes(cpu) && this.#isCounting(event)) continue
      this.#opened.delete(cpu)
      this.#object.detachEvent(event.link)
    }
    let refused: unknown
    for (const cpu of online) {
      try {
        this.#set(cpu, this.#periodOf(cpu))
      } catch (error) {
        refused = error // it may just have gone offline
      }
    }
    if (this.#opened.size === 0 && refused !== undefined) throw refused
  }

  close(): void {
    for (const { link } of this.#opened.values()) this.#object.detachEvent(link)
    this.#opened.clear()
  }

  /**
   * False: its CPU went offline, for example because the host slept. The event does not resume when the CPU comes back.
   */
  #isCounting(event: Opened): boolean {
    const { countedNs } = event
    try {
      if (readSync(event.fd, this.#read) === this.#read.length)
        event.countedNs = this.#read.readBigUInt64LE(8)
    } catch {
      return false // closed by the kernel
    }
    return event.countedNs > countedNs
  }

  #set(cpu: number, period: number): void {
    const known = this.#opened.get(cpu)
    if (known === undefined) {
      this.#opened.set(cpu, this.#open(cpu, period))
    } else if (known.period !== period) {
      this.#object.native.ioctl(known.fd, setPeriod, wordOf(period))
      known.period = period
    }
  }

  #open(cpu: number, period: number): Opened {
    const bytes = Buffer.alloc(attributes.size)
    bytes.writeUInt32LE(typeSoftware, attributes.type)
    bytes.writeBigUInt64LE(BigInt(this.#event), attributes.config)
    bytes.writeBigUInt64LE(BigInt(period), attributes.samplePeriod)
    bytes.writeBigUInt64LE(formatTimeEnabled, attributes.readFormat)
    bytes.writeBigUInt64LE(flagDisabled, attributes.flags)
    const fd = this.#object.native.perfEventOpen(bytes, -1, cpu, -1, 0)
    try {
      return { fd, link: this.#object.attachEvent(this.#program, fd), period, countedNs: 0n }
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }
}

/** Numbers of the online CPUs (kernel format "cpulist"): `0,3-5`. */
function cpusOnline(): number[] {
  const cpus: number[] = []
  for (const part of readFileSync(onlineCpus, 'latin1').trim().split(',')) {
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part)
    const last = Math.min(mostCpus, Number(range?.[2] ?? range?.[1]))
    for (let cpu = Number(range?.[1]); cpu <= last; cpu++) cpus.push(cpu)
  }
  return cpus
}

function wordOf(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer)
}

const nanosecondsPerSecond = 1e9
/** Maximum rates in use at once, and their maximum distance from the configured one. */
const mostRates = 4
const farthest = 0.25

/**
 * Up to four primes near a rate, nearest first. A program with periodic work would always be sampled at the same place
 * if the rate divided its own, or if all CPUs had the same rate.
 */
export function primesNear(rate: number): readonly number[] {
  const found: number[] = []
  for (let distance = 0; distance <= rate * farthest && found.length < mostRates; distance++) {
    if (isPrime(rate - distance)) found.push(rate - distance)
    if (distance > 0 && isPrime(rate + distance)) found.push(rate + distance)
  }
  return found.length === 0 ? [rate] : found.slice(0, mostRates)
}

function isPrime(value: number): boolean {
  if (value < 2) return false
  for (let factor = 2; factor * factor <= value; factor++) if (value % factor === 0) return false
  return true
}

/** Nanoseconds between samples at a rate. */
export function periodNs(rate: number): number {
  return Math.round(nanosecondsPerSecond / rate)
}
