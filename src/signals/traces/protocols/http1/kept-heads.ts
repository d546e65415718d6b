/** Bytes of one head that are kept, at most. */
const maxKept = 16_384
/** What a head begins with, and what it takes beside its bytes (measured). */
const least = 256
const overhead = 250
/** Heads that are kept for later use, and how large one may be for that. */
const maxFree = 256
const maxFreeBytes = 4_096

/** The first bytes of a request's head, until its response is there. */
export class KeptHead {
  bytes: Buffer = Buffer.allocUnsafeSlow(least)
  length = 0
  /** Something found no room: what follows it must not be read as if it came next. */
  cut = false

  /** Bytes of memory that it takes. */
  get memory(): number {
    return this.bytes.length + overhead
  }
}

/** Lends the buffers in which request heads wait. Who borrows them counts what they take. */
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

  /** Lets go of what stands behind the first `most` bytes. */
  shorten(head: KeptHead, most: number): void {
    if (head.length <= most) return
    head.length = most
    head.cut = true
    if (head.bytes.length <= maxFreeBytes) return
    const { bytes } = head
    head.bytes = Buffer.allocUnsafeSlow(Math.max(least, most))
    bytes.copy(head.bytes, 0, 0, most)
  }

  /** Adds as many of `source[start, end)` as there is room for, and nothing behind a gap. */
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
