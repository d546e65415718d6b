import { closeSync, openSync, readSync } from 'node:fs'

/** User space of x86-64 and arm64 with four levels of page tables ends here. */
const addressLimit = 2 ** 47
const mostBytes = 64 * 1024

/** What was read last, of whatever process: there is one reader at a time. */
const bytes = Buffer.allocUnsafeSlow(mostBytes)

/**
 * Reads the memory of another process (`/proc/PID/mem`, proc(5)). It is that of the program that ran when this was
 * opened: when that ended or gave way to another by execve(2), nothing can be read any more. Never throws.
 */
export class ProcessMemory {
  #fd: number

  /** Undefined where there is no such process, or it may not be read. `pid` is one of the agent's own namespace. */
  static open(pid: number): ProcessMemory | undefined {
    try {
      return new ProcessMemory(openSync(`/proc/${pid}/mem`, 'r'))
    } catch {
      return undefined // It ended, or is not the agent's to read.
    }
  }

  private constructor(fd: number) {
    this.#fd = fd
  }

  /** All of `length` bytes (64 KiB at most) or undefined. They are good until the next reading, of whatever process. */
  read(address: number, length: number): Buffer | undefined {
    const isSane = address > 0 && length > 0 && length <= mostBytes && address + length <= addressLimit
    if (this.#fd < 0 || !isSane || !Number.isInteger(address)) return undefined
    try {
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
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
  }
}

/** A pointer among bytes that were read; 0 where it points at nothing in user space. */
export function pointerAt(from: Buffer, at: number): number {
  const address = from.readUInt32LE(at) + from.readUInt32LE(at + 4) * 4294967296
  return address < addressLimit ? address : 0
}
