/** A leased buffer. The holder releases it once, and does not use it afterwards. */
export interface Lease {
  readonly buffer: Buffer
  release(): void
}

export interface PageBuffersOptions {
  /** Maximum bytes of idle buffers kept for reuse. */
  readonly keptBytes: number
  /** Maximum bytes of leased buffers; twice that for leases within their `entitled` size. */
  readonly leasedBytes: number
  /** Time after which an idle buffer is freed, in milliseconds. */
  readonly keptMs: number
}

interface Kept {
  readonly buffer: Buffer
  readonly sinceMs: number
}

const smallest = 64 * 1024
const small = 256 * 1024

/**
 * Pooled buffers for pages, shared by all clients: few pages are read at a time, and allocating megabytes for each one
 * costs more (the kernel clears them) than reading into them.
 */
export class PageBuffers {
  readonly #options: PageBuffersOptions
  #mostLeased: number
  /** The last released one is at the end: its memory is warm. */
  #kept: Kept[] = []
  #keptBytes = 0
  #leasedBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: PageBuffersOptions) {
    this.#options = options
    this.#mostLeased = options.leasedBytes
  }

  /** Bytes of all buffers, leased and idle. */
  get bytes(): number {
    return this.#keptBytes + this.#leasedBytes
  }

  /** Lowers the maximum of leased bytes. */
  limit(bytes: number): void {
    this.#mostLeased = Math.min(bytes, this.#options.leasedBytes)
  }

  /** Frees the oldest idle buffers, up to about `bytes`. Returns how many. */
  shed(bytes: number): number {
    const before = this.#keptBytes
    while (before - this.#keptBytes < bytes && this.#kept.length > 0)
      this.#keptBytes -= this.#kept.shift()!.buffer.length
    return before - this.#keptBytes
  }

  get keptBytes(): number {
    return this.#keptBytes
  }

  get leasedBytes(): number {
    return this.#leasedBytes
  }

  /**
   * Leases a buffer of at least `bytes`; undefined if too much is leased. Small buffers are always available, and those
   * up to `entitled` have twice the limit, so that endless pages of some targets do not block others.
   */
  lease(bytes: number, entitled = 0): Lease | undefined {
    const most = this.#mostLeased * (bytes <= entitled ? 2 : 1)
    if (bytes > small && bytes + this.#leasedBytes > most) return undefined
    const buffer = this.#reuse(bytes) ?? Buffer.allocUnsafeSlow(sizeFor(bytes))
    this.#leasedBytes += buffer.length
    let isOut = true
    return {
      buffer,
      release: () => {
        if (!isOut) return
        isOut = false
        this.#leasedBytes -= buffer.length
        this.#keep(buffer)
      },
    }
  }

  #reuse(bytes: number): Buffer | undefined {
    let found = -1
    for (let i = this.#kept.length - 1; i >= 0; i--) {
      const { length } = this.#kept[i]!.buffer
      const isFit = length >= bytes && length <= 4 * Math.max(bytes, smallest)
      if (isFit && (found < 0 || length < this.#kept[found]!.buffer.length)) found = i
    }
    const [kept] = found < 0 ? [] : this.#kept.splice(found, 1)
    if (kept === undefined) return undefined
    this.#keptBytes -= kept.buffer.length
    return kept.buffer
  }

  #keep(buffer: Buffer): void {
    if (buffer.length > this.#options.keptBytes) return
    this.#kept.push({ buffer, sinceMs: performance.now() })
    this.#keptBytes += buffer.length
    while (this.#keptBytes > this.#options.keptBytes) this.#keptBytes -= this.#kept.shift()!.buffer.length
    this.#watch()
  }

  #watch(): void {
    this.#timer ??= setTimeout(() => this.#giveUp(), this.#options.keptMs).unref()
  }

  #giveUp(): void {
    this.#timer = undefined
    const oldest = performance.now() - this.#options.keptMs
    this.#kept = this.#kept.filter(({ sinceMs }) => sinceMs > oldest)
    this.#keptBytes = this.#kept.reduce((sum, { buffer }) => sum + buffer.length, 0)
    if (this.#kept.length > 0) this.#watch()
  }
}

/** In steps of a quarter of a power of two, so that pages of similar size share buffers. */
function sizeFor(bytes: number): number {
  if (bytes <= smallest) return smallest
  const step = 2 ** Math.floor(Math.log2(bytes)) / 4
  return Math.ceil(bytes / step) * step
}

/** Pool shared by all targets. A page of 100,000 series takes 15 MB. */
export const pageBuffers = new PageBuffers({
  keptBytes: 32 * 1024 * 1024,
  leasedBytes: 256 * 1024 * 1024,
  // Scrapes that come more often share buffers; others may allocate, which takes less than a millisecond for a page.
  keptMs: 5000,
})
