/**
 * Reads the fields of a Kafka message (kafka.apache.org/protocol) one after the other, of which only the first part may
 * be there. Beyond what is there it reads zeros and is no longer `ok`. Big endian all of it.
 */
export class Cursor {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  end = 0
  /** Everything that was read so far was there. */
  ok = true
  /** The message has compact lengths and tagged fields (KIP-482). */
  flexible = false
  /** Range of the text or the bytes that were read last; empty for null. */
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

  /** At most 32 bits, seven a byte, the lowest first. */
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

  /** Number of elements; 0 for null. It is not to be believed: whoever reads the elements asks for `ok` at each. */
  array(): number {
    return Math.max(0, this.flexible ? this.unsigned() - 1 : this.int32())
  }

  /** Text whose length has 16 bits or is compact. */
  text(): void {
    this.#range(this.flexible ? this.unsigned() - 1 : this.int16())
  }

  /** Sixteen bytes that name a topic. */
  uuid(): void {
    this.#range(16)
  }

  /** Length of bytes that follow, which need not be there; 0 for null. */
  bytesLength(): number {
    return Math.max(0, this.flexible ? this.unsigned() - 1 : this.int32())
  }

  /** Behind each structure of a flexible message. */
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
