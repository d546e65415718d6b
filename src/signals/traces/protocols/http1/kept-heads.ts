/** Maximum bytes kept of one head. */
const maxKept = 16_384
/** Initial size of a buffer, and its overhead in addition to its bytes (measured). */
const least = 256
const overhead = 250
/** Maximum number of buffers in the pool, and their maximum size. */
const maxFree = 256
const maxFreeBytes = 4_096

/** The first bytes of a request's head, kept until the response arrives. */
export class KeptHead {
  bytes: Buffer = Buffer.allocUnsafeSlow(least)
  length = 0
  /** A part found no room: later bytes must not be read as if they followed directly. */
  cut = false

  /** Bytes of memory that it takes. */
  get memory(): number {
    return this.bytes.length + overhead
  }
}

/** Lends buffers for waiting request heads. The borrower accounts for their size. */
export class KeptHeads {
  readonly #free: KeptHead[] = []

  take(): KeptHead {
    const head = this.#free.pop() ?? new KeptHead()
    head.length = 0
    head.cut = false
    return head
  }

  give(head: KeptHead): void {
    if (this.#free.length < maxFree && head.bytes.length <= maxFreeBytes) this.#free.push(head)
  }

  /** Removes everything after the first `most` bytes. */
  shorten(head: KeptHead, most: number): void {
    if (head.length <= most) return
    head.length = most
    head.cut = true
    if (head.bytes.length <= maxFreeBytes) return
    const { bytes } = head
    head.bytes = Buffer.allocUnsafeSlow(Math.max(least, most))
    bytes.copy(head.bytes, 0, 0, most)
  }

  /** Appends as much of `source[start, end)` as there is room for, and nothing after a gap. */
  append(head: KeptHead, source: Buffer, start: number, end: number): void {
    if (head.cut) return
    const wanted = Math.min(maxKept, head.length + end - start)
    if (wanted > head.bytes.length) grow(head, wanted)
    const count = wanted - head.length
    head.cut = count < end - start
    if (count <= 0) return
    source.copy(head.bytes, head.length, start, start + count)
    head.length += count
  }
}

function grow(head: KeptHead, length: number): void {
  const bytes = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(length)))
  head.bytes.copy(bytes, 0, 0, head.length)
  head.bytes = bytes
}
