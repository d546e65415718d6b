// Reads the memory of other processes (`/proc/PID/mem`, proc(5)) through svc-probe: a page of a FUSE file arrives when
// its server likes, and checking first whether it is resident does not help, as the process can replace its mappings.

import { readFileSync } from 'node:fs'
import type { Owner } from '../foundation/lib/fair-share.ts'
import { u64 } from '../foundation/lib/u64.ts'
import type { HelperAnswer } from './helper-channel.ts'
import { type ProcessAsker, processAsker } from './process-asker.ts'
import { ownerOf } from './process-owner.ts'

/** End of user space on x86-64 and arm64 with four levels of page tables. */
const addressLimit = 2 ** 47
const mostBytes = 64 * 1024
/** Block size of reads (BLOCK and MOST_BLOCKS of native/probe/probe.c). */
const blockBytes = 4096
const mostBlocks = 16

/** Result of the last read, of any process: there is one reader at a time. */
const bytes = Buffer.allocUnsafeSlow(mostBytes)

/** Blocks read in this turn, by process and address; -1: unreadable. */
const slots = new Map<number, number>()
const mostSlots = 512
const mostKnown = 4 * mostSlots
const kept = Buffer.allocUnsafeSlow(mostSlots * blockBytes)
let nextSlot = 0
let turns = 0
let nextProcess = 1

/**
 * Reads the memory of another process, as of the program that ran when this was opened: once that exits or calls
 * execve(2), nothing can be read any more. Pages that are not resident are not read. Never throws, and waits only
 * briefly.
 */
export class ProcessMemory {
  readonly #asker: ProcessAsker
  readonly #number = nextProcess++
  readonly #directory: string
  readonly #owner: () => Owner
  readonly #image: string
  #isClosed = false
  /** svc-probe's name for it, */
  #descriptors = ''
  /** and the svc-probe that has it open; undefined: none. */
  #program: object | undefined

  /**
   * Undefined if there is no such process, it may not be read, or opening it takes too long. `pid` is in the namespace
   * of `procDir`.
   */
  static open(pid: number, procDir = '/proc', asker = processAsker): ProcessMemory | undefined {
    const memory = new ProcessMemory(pid, procDir, asker)
    return memory.#open() ? memory : undefined
  }

  /**
   * Reads during `work` are cached in blocks: symbolization makes many small reads close to each other, and each would
   * be a request to svc-probe.
   */
  static inOneTurn<T>(work: () => T): T {
    turns++
    try {
      return work()
    } finally {
      if (--turns === 0) forgetBlocks()
    }
  }

  private constructor(pid: number, procDir: string, asker: ProcessAsker) {
    let known: Owner | undefined
    this.#directory = `${procDir}/${pid}`
    this.#owner = () => {
      known ??= ownerOf(procDir, pid)
      return known
    }
    // Before it is opened: a program that replaces it in between is then never mistaken for it.
    this.#image = imageOf(this.#directory)
    this.#asker = asker
  }

  /** All of `length` bytes (64 KiB at most) or undefined. They are valid until the next read of any process. */
  read(address: number, length: number): Buffer | undefined {
    const isSane = address > 0 && length > 0 && length <= mostBytes && address + length <= addressLimit
    if (this.#isClosed || !isSane || !Number.isInteger(address)) return undefined
    if (turns === 0) forgetBlocks()
    const first = Math.floor(address / blockBytes)
    const last = Math.floor((address + length - 1) / blockBytes)
    this.#bring(first, last)
    const start = address - first * blockBytes
    if (first === last) {
      const slot = slots.get(this.#keyOf(first))!
      return slot < 0 ? undefined : kept.subarray(slot + start, slot + start + length)
    }
    let done = 0
    for (let block = first; block <= last; block++) {
      const slot = slots.get(this.#keyOf(block)) ?? -1
      if (slot < 0) return undefined
      const from = block === first ? slot + start : slot
      done += kept.copy(bytes, done, from, Math.min(slot + blockBytes, from + length - done))
    }
    return bytes.subarray(0, length)
  }

  /** In a turn: prefetches addresses, all at once. Unreadable ones are found later. */
  expect(addresses: Iterable<number>, length: number): void {
    if (turns === 0 || this.#isClosed) return
    const missing = new Set<number>()
    for (const address of addresses) {
      if (!(Number.isInteger(address) && address > 0 && address + length <= addressLimit)) continue
      const last = Math.floor((address + length - 1) / blockBytes)
      for (let block = Math.floor(address / blockBytes); block <= last; block++)
        if (!slots.has(this.#keyOf(block))) missing.add(block)
    }
    this.#askAll([...missing].slice(0, mostSlots - nextSlot))
  }

  u8(address: number): number | undefined {
    return this.read(address, 1)?.[0]
  }

  u32(address: number): number | undefined {
    return this.read(address, 4)?.readUInt32LE()
  }

  /** Inexact beyond 2^53. */
  u64(address: number): number | undefined {
    const found = this.read(address, 8)
    return found && u64(found, 0)
  }

  /** A pointer; 0 if it is unreadable or not in user space. */
  pointer(address: number): number {
    const found = this.read(address, 8)
    return found ? pointerAt(found, 0) : 0
  }

  close(): void {
    if (!this.#isClosed && this.#isOpen) this.#asker.release(this.#descriptors)
    this.#isClosed = true
  }

  /** If svc-probe ended, the file is closed, and the next one does not have it open. */
  get #isOpen(): boolean {
    return this.#program !== undefined && this.#program === this.#asker.running
  }

  #open(): boolean {
    const asker = this.#asker
    const late = ({ errno, payload }: HelperAnswer) => {
      if (errno === 0) asker.release(payload.toString('latin1'))
    }
    const text = this.#directory
    const answer = asker.ask({ operation: 'O', limit: 0, text, owner: this.#owner, late })
    if (answer?.errno !== 0) return false
    this.#descriptors = answer.payload.toString('latin1')
    this.#program = asker.running
    return true
  }

  /** Brings blocks from the first to the last into their slots. */
  #bring(first: number, last: number): void {
    const missing: number[] = []
    for (let block = first; block <= last; block++) if (!slots.has(this.#keyOf(block))) missing.push(block)
    // Reuse slots only when all are used: results of this turn would be lost.
    if (nextSlot + missing.length > mostSlots || slots.size > mostKnown) {
      forgetBlocks()
      this.#bring(first, last)
      return
    }
    this.#askAll(missing)
  }

  #askAll(blocks: readonly number[]): void {
    for (let at = 0; at < blocks.length; at += mostBlocks) this.#ask(blocks.slice(at, at + mostBlocks))
  }

  #ask(blocks: readonly number[]): void {
    for (const block of blocks) slots.set(this.#keyOf(block), -1)
    if (!this.#isOpen && !(imageOf(this.#directory) === this.#image && this.#open())) return
    const addresses = blocks.map(block => block * blockBytes).join(' ')
    const text = `${this.#descriptors} ${addresses}`
    const answer = this.#asker.ask({ operation: 'M', limit: 0, text, owner: this.#owner })
    if (answer?.errno !== 0) return
    let at = 0
    for (const block of blocks) {
      if (answer.payload[at++] !== 1) continue
      const slot = nextSlot++ * blockBytes
      answer.payload.copy(kept, slot, at, at + blockBytes)
      slots.set(this.#keyOf(block), slot)
      at += blockBytes
    }
  }

  /** Block numbers have 35 bits. */
  #keyOf(block: number): number {
    return (this.#number % 2 ** 18) * 2 ** 35 + block
  }
}

/**
 * Distinguishes programs that a process runs in turn: its start time, and the start of its code and stack
 * (proc_pid_stat(5)).
 */
function imageOf(directory: string): string {
  try {
    const stat = readFileSync(`${directory}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 26)
    return [fields[19], fields[23], fields[25]].join(' ')
  } catch {
    return 'none' // it exited, and none is opened again
  }
}

function forgetBlocks(): void {
  slots.clear()
  nextSlot = 0
}

/** A pointer in bytes that were read; 0 if it is not in user space. */
export function pointerAt(from: Buffer, at: number): number {
  const address = u64(from, at)
  return address < addressLimit ? address : 0
}
