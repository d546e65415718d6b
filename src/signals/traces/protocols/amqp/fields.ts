import type { ByteRange } from '../../../../foundation/lib/byte-range.ts'

/** Reads the arguments of a method in order (AMQP 0-9-1, section 4.2.5). Reused. */
export class Fields {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  end = 0
  /** False after a read beyond the end; values from there on are zero or empty. */
  whole = true

  set(bytes: Buffer, start: number, end: number): this {
    this.bytes = bytes
    this.at = start
    this.end = end
    this.whole = true
    return this
  }

  /** Releases the bytes. */
  clear(): void {
    this.bytes = nothing
    this.at = 0
    this.end = 0
  }

  octet(): number {
    return this.#take(1) ? this.bytes[this.at - 1]! : 0
  }

  short(): number {
    return this.#take(2) ? this.bytes.readUInt16BE(this.at - 2) : 0
  }

  long(): number {
    return this.#take(4) ? this.bytes.readUInt32BE(this.at - 4) : 0
  }

  /** As a double: exact up to 2^53. */
  longLong(): number {
    const high = this.long()
    return high * 2 ** 32 + this.long()
  }

  shortString(into: ByteRange): void {
    const length = this.octet()
    if (this.#take(length)) into.set(this.at - length, this.at)
    else into.clear()
  }

  skip(count: number): void {
    this.#take(count)
  }

  #take(count: number): boolean {
    if (count > this.end - this.at) {
      this.at = this.end
      this.whole = false
      return false
    }
    this.at += count
    return true
  }
}

const nothing = Buffer.alloc(0)
