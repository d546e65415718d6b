import type { Batch } from '../foundation/model/batch.ts'

/** Compresses a request. */
export type Compress = (batch: Batch) => Promise<Batch>

interface Job {
  readonly batch: Batch
  readonly firstItem: number
  readonly compress: Compress | undefined
}

/** Compresses batches one after another, so that they stay in order. */
export class Compressor {
  readonly #out: (batch: Batch) => void
  /** Jobs in order; the first is being compressed. */
  readonly #jobs = new Set<Job>()
  #last: Promise<void> = Promise.resolve()
  #items = 0
  #bytes = 0

  constructor(out: (batch: Batch) => void) {
    this.#out = out
  }

  /** Items of the batches that were not passed on yet. */
  get items(): number {
    return this.#items
  }

  /** Bytes of their requests before compression. */
  get bytes(): number {
    return this.#bytes
  }

  /** `firstItem` of the oldest batch that was not passed on yet; undefined for none. */
  get firstItem(): number | undefined {
    for (const { firstItem } of this.#jobs) return firstItem
    return undefined
  }

  /** Settles when all batches so far were passed on. */
  get done(): Promise<void> {
    return this.#last
  }

  /**
   * Passes the batch on after those before it; uncompressed if `compress` is undefined or fails. No item in it is before
   * number `firstItem`.
   */
  add(batch: Batch, compress: Compress | undefined, firstItem = 0): void {
    if (compress === undefined && this.#jobs.size === 0) {
      this.#out(batch)
      return
    }
    const job = { batch, compress, firstItem }
    this.#jobs.add(job)
    this.#items += batch.items
    this.#bytes += batch.plainBytes
    this.#last = this.#last.then(() => this.#work(job))
  }

  /** Passes on all batches uncompressed, without waiting for a thread pool that may be blocked. */
  handOn(): void {
    for (const job of this.#jobs) this.#finish(job, job.batch)
  }

  async #work(job: Job): Promise<void> {
    if (!this.#jobs.has(job)) return
    const { batch, compress } = job
    let compressed = batch
    try {
      if (compress !== undefined) compressed = await compress(batch)
    } catch {
      // It can also be sent uncompressed.
    }
    if (this.#finish(job, compressed) && compressed !== batch) batch.free?.()
  }

  /** False if it was already passed on uncompressed. */
  #finish(job: Job, compressed: Batch): boolean {
    if (!this.#jobs.delete(job)) return false
    this.#items -= job.batch.items
    this.#bytes -= job.batch.plainBytes
    this.#out(compressed)
    return true
  }
}
