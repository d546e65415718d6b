import type { ElfFile } from '../../foundation/lib/elf/elf-file.ts'

/** Longer entries of .eh_frame are skipped: the longest in large programs have about 100 KiB. */
const windowBytes = 512 * 1024
/** Maximum length of a LEB128 number with 64 bits. */
const mostLebBytes = 10

/** Pointer encodings (Linux Standard Base, core 5.0, 10.5.1). */
export const pointerEncoding = { relativeToPlace: 0x10, aligned: 0x50, omitted: 0xff } as const

/**
 * Reads numbers of .eh_frame (Linux Standard Base, core 5.0, 10.6; DWARF 5, 7.6) through a window on the file. Reads
 * past `end` return 0 and set `failed`.
 */
export class FrameReader {
  /** Offsets in the window. */
  at = 0
  end = 0
  failed = false
  readonly size: number
  readonly #elf: ElfFile
  readonly #offset: number
  readonly #address: number
  readonly #window: Buffer
  #start = 0
  #filled = 0

  /** A part of the file, and its load address. */
  constructor(elf: ElfFile, offset: number, size: number, address: number) {
    this.#elf = elf
    this.#offset = offset
    this.#address = address
    this.size = size
    this.#window = Buffer.allocUnsafeSlow(Math.min(windowBytes, size))
  }

  /** Moves to a position in the part, for `length` bytes; false if they do not exist, or are too many. */
  enter(position: number, length: number): boolean {
    if (position < 0 || length > this.#window.length || position + length > this.size) return false
    if (position < this.#start || position + length > this.#start + this.#filled) {
      this.#filled = Math.min(this.#window.length, this.size - position)
      this.#start = position
      this.#elf.readInto(this.#window.subarray(0, this.#filled), this.#offset + position)
    }
    this.at = position - this.#start
    this.end = this.at + length
    this.failed = false
    return true
  }

  skip(length: number): void {
    if (length <= this.end - this.at) this.at += length
    else this.fail()
  }

  u8(): number {
    return this.at < this.end ? this.#window[this.at++]! : this.fail()
  }

  u16(): number {
    return this.#has(2) ? this.#window.readUInt16LE(this.at - 2) : 0
  }

  u32(): number {
    return this.#has(4) ? this.#window.readUInt32LE(this.at - 4) : 0
  }

  /** Exact up to 53 bits. */
  i64(): number {
    if (!this.#has(8)) return 0
    return this.#window.readInt32LE(this.at - 4) * 4294967296 + this.#window.readUInt32LE(this.at - 8)
  }

  /** Exact up to 53 bits, like `sleb`. */
  uleb(): number {
    const first = this.u8()
    return first < 128 ? first : this.#leb(first & 127)
  }

  sleb(): number {
    const first = this.u8()
    if (first < 128) return first & 64 ? first - 128 : first
    const before = this.at
    const value = this.#leb(first & 127)
    const last = this.#window[this.at - 1]!
    return !this.failed && last & 64 ? value - 2 ** (7 * (this.at - before + 1)) : value
  }

  /** NUL-terminated ASCII. */
  text(): string {
    let text = ''
    for (let byte = this.u8(); byte !== 0; byte = this.u8()) text += String.fromCharCode(byte)
    return text
  }

  /** An address, or the difference of two if the upper half of `encoding` is 0. */
  pointer(encoding: number): number {
    if (encoding === pointerEncoding.omitted) return 0
    if (encoding === pointerEncoding.aligned) this.skip(-this.#place() & 7)
    const place = this.#place()
    const value = this.#number(encoding & 15)
    return (encoding & 0x70) === pointerEncoding.relativeToPlace ? place + value : value
  }

  #place(): number {
    return this.#address + this.#start + this.at
  }

  #number(format: number): number {
    switch (format) {
      case 1:
        return this.uleb()
      case 2:
        return this.u16()
      case 3:
        return this.u32()
      case 9:
        return this.sleb()
      case 10:
        return (this.u16() << 16) >> 16
      case 11:
        return this.u32() | 0
      case 0:
      case 4:
      case 12:
        return this.i64()
      default:
        return this.fail()
    }
  }

  #leb(first: number): number {
    let value = first
    let scale = 128
    for (let count = 1; count < mostLebBytes; count++) {
      const byte = this.u8()
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
    return this.fail()
  }

  #has(length: number): boolean {
    this.skip(length)
    return !this.failed
  }

  /** Ends the current entry. */
  fail(): number {
    this.failed = true
    this.at = this.end
    return 0
  }
}
