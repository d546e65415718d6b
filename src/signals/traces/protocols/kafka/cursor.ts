/**
 * Reads the fields of a Kafka message (kafka.apache.org/protocol) in order. The message may be truncated: beyond its
 * end it reads zeros and is no longer `ok`. Everything is big endian.
 */
export class Cursor {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  end = 0
  /** Everything read so far was available. */
  ok = true
  /** The message has compact lengths and tagged fields (KIP-482). */
  flexible = false
  /** Range of the last text or bytes read; empty for null. */
  textStart = 0
  textEnd = 0

  open(bytes: Buffer, start: number, end: number, flexible: boolean): void {
    this.bytes = bytes
    this.at = start
    this.end = end
    this.ok = true
    this.flexible = flexible
  }

  skip(count: number): void {
    if (count > this.end - this.at || count < 0) this.#fail()
    else this.at += count
  }

  int8(): number {
    return this.#has(1) ? this.bytes.readInt8(this.at++) : 0
  }

  int16(): number {
    if (!this.#has(2)) return 0
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    if (!this.#has(4)) return 0
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  /** At most 32 bits, seven per byte, the lowest first. */
  unsigned(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      if (!this.#has(1)) return 0
      const byte = this.bytes[this.at++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    this.#fail()
    return 0
  }

  /** Number of elements; 0 for null. It is untrusted: check `ok` at each element. */
  array(): number {
    return Math.max(0, this.flexible ? this.unsigned() - 1 : this.int32())
  }

  /** Text with a 16-bit or compact length. */
  text(): void {
    this.#range(this.flexible ? this.unsigned() - 1 : this.int16())
  }

  /** Sixteen bytes that identify a topic. */
  uuid(): void {
    this.#range(16)
  }

  /** Length of the bytes that follow, which may be missing; 0 for null. */
  bytesLength(): number {
    return Math.max(0, this.flexible ? this.unsigned() - 1 : this.int32())
  }

  /** Tagged fields, at the end of each structure of a flexible message. */
  tags(): void {
    if (!this.flexible) return
    for (let count = this.unsigned(); count > 0 && this.ok; count--) {
      this.unsigned()
      this.skip(this.unsigned())
    }
  }

  #range(length: number): void {
    this.textStart = this.at
    this.skip(Math.max(0, length))
    this.textEnd = this.ok ? this.at : this.textStart
  }

  #has(count: number): boolean {
    if (this.end - this.at >= count) return true
    this.#fail()
    return false
  }

  #fail(): void {
    this.ok = false
    this.at = this.end
  }
}
