import { closeSync, openSync, readSync } from 'node:fs'
import { pageSizeBytes } from './page-size.ts'

/** User space of x86-64 and arm64 with four levels of page tables ends here. */
const addressLimit = 2 ** 47
const mostBytes = 64 * 1024
/** A word for each page (kernel documentation, admin-guide/mm/pagemap.rst): bits 63 and 62, in memory or in swap. */
const pageWordBytes = 8
const isThere = 0xc0
let pageBytes = 0

/** What was read last, of whatever process: there is one reader at a time. */
const bytes = Buffer.allocUnsafeSlow(mostBytes)
const pageWords = Buffer.allocUnsafeSlow((mostBytes / 4096 + 1) * pageWordBytes)

/**
 * Reads the memory of another process (`/proc/PID/mem`, proc(5)). It is that of the program that ran when this was
 * opened: when that ended or gave way to another by execve(2), nothing can be read any more. Pages that the process does
 * not have in memory are not read: whoever fills them (FUSE, userfaultfd(2)) may let a reader wait for ever. Never throws.
 */
export class ProcessMemory {
  #fd: number
  /** -1: it is not told which pages are there. */
  readonly #pages: number

  /** Undefined where there is no such process, or it may not be read. `pid` is one of the agent's own namespace. */
  static open(pid: number): ProcessMemory | undefined {
    const fd = opened(`/proc/${pid}/mem`)
    return fd < 0 ? undefined : new ProcessMemory(fd, opened(`/proc/${pid}/pagemap`))
  }

  private constructor(fd: number, pages: number) {
    this.#fd = fd
    this.#pages = pages
  }

  /** All of `length` bytes (64 KiB at most) or undefined. They are good until the next reading, of whatever process. */
  read(address: number, length: number): Buffer | undefined {
    const isSane = address > 0 && length > 0 && length <= mostBytes && address + length <= addressLimit
    if (this.#fd < 0 || !isSane || !Number.isInteger(address)) return undefined
    try {
      if (!this.#isThere(address, length)) return undefined
      return readSync(this.#fd, bytes, 0, length, address) === length ? bytes.subarray(0, length) : undefined
    } catch {
      return undefined // Nothing is mapped there, or the process ended.
    }
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
    return found && found.readUInt32LE(0) + found.readUInt32LE(4) * 4294967296
  }

  /** A pointer; 0 where it cannot be read or points at nothing in user space. */
  pointer(address: number): number {
    const found = this.read(address, 8)
    return found ? pointerAt(found, 0) : 0
  }

  close(): void {
    if (this.#fd < 0) return
    closeSync(this.#fd)
    if (this.#pages >= 0) closeSync(this.#pages)
    this.#fd = -1
  }

  #isThere(address: number, length: number): boolean {
    if (this.#pages < 0) return true
    pageBytes ||= pageSizeBytes()
    const first = Math.floor(address / pageBytes)
    const size = (Math.floor((address + length - 1) / pageBytes) - first + 1) * pageWordBytes
    if (readSync(this.#pages, pageWords, 0, size, first * pageWordBytes) !== size) return false
    for (let at = pageWordBytes - 1; at < size; at += pageWordBytes)
      if ((pageWords[at]! & isThere) === 0) return false
    return true
  }
}

/** -1: the process ended, or is not the agent's to read. */
function opened(path: string): number {
  try {
    return openSync(path, 'r')
  } catch {
    return -1
  }
}

/** A pointer among bytes that were read; 0 where it points at nothing in user space. */
export function pointerAt(from: Buffer, at: number): number {
  const address = from.readUInt32LE(at) + from.readUInt32LE(at + 4) * 4294967296
  return address < addressLimit ? address : 0
}
