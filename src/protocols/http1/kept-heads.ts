/** Bytes of one head that are kept, at most. */
const maxKept = 16_384
/** What a head gets in any case. */
const least = 256
/** Bytes that all heads may have together beyond that. */
const maxHeld = 16 * 2 ** 20
/** Heads that are kept for later use. */
const maxFree = 256

/** The first bytes of a request's head, until its response is there. */
export class KeptHead {
  bytes: Buffer = Buffer.allocUnsafeSlow(least)
  length = 0
  /** Something found no room: what follows it must not be read as if it came next. */
  cut = false
}

/** Lends the buffers in which request heads wait. Their memory is bounded: when it is short, less of a head is kept. */
export class KeptHeads {
  private readonly free: KeptHead[] = []
  private held = 0

  take(): KeptHead {
    const head = this.free.pop() ?? new KeptHead()
    this.held += head.bytes.length
    head.length = 0
    head.cut = false
    return head
  }

  give(head: KeptHead): void {
    this.held -= head.bytes.length
    if (this.free.length < maxFree) this.free.push(head)
  }

  /** Adds as many of `source[start, end)` as there is room for, and nothing behind a gap. */
  append(head: KeptHead, source: Buffer, start: number, end: number): void {
    if (head.cut) return
    const wanted = Math.min(maxKept, head.length + end - start)
    if (wanted > head.bytes.length) this.grow(head, wanted)
    const count = Math.min(wanted, head.bytes.length) - head.length
    head.cut = count < end - start
    if (count <= 0) return
    source.copy(head.bytes, head.length, start, start + count)
    head.length += count
  }

  private grow(head: KeptHead, length: number): void {
    const more = 2 ** Math.ceil(Math.log2(length)) - head.bytes.length
    if (this.held + more > maxHeld) return
    this.held += more
    const bytes = Buffer.allocUnsafeSlow(head.bytes.length + more)
    head.bytes.copy(bytes, 0, 0, head.length)
    head.bytes = bytes
  }
}
