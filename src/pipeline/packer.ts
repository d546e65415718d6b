import type { Batch } from '../model/batch.ts'

/** Compresses a request. */
export type Pack = (batch: Batch) => Promise<Batch>

interface Job {
  readonly batch: Batch
  readonly firstItem: number
  readonly pack: Pack | undefined
}

/** Compresses batches one after another, so that they stay in order. */
export class Packer {
  readonly #out: (batch: Batch) => void
  /** In order; the first is being compressed. */
  readonly #jobs = new Set<Job>()
  #last: Promise<void> = Promise.resolve()
  #items = 0
  #bytes = 0

  constructor(out: (batch: Batch) => void) {
    this.#out = out
  }

  /** Of the batches that were not handed on yet. */
  get items(): number {
    return this.#items
  }

  /** Of their requests before compression. */
  get bytes(): number {
    return this.#bytes
  }

  /** `firstItem` of the oldest batch that was not handed on yet; undefined where there is none. */
  get firstItem(): number | undefined {
    for (const { firstItem } of this.#jobs) return firstItem
    return undefined
  }

  /** Settled when all batches that came so far were handed on. */
  get done(): Promise<void> {
    return this.#last
  }

  /**
   * Hands the batch on when those before it were; as it is where `pack` is undefined or fails. No item in it came before
   * number `firstItem`.
   */
  add(batch: Batch, pack: Pack | undefined, firstItem = 0): void {
    if (pack === undefined && this.#jobs.size === 0) {
      this.#out(batch)
      return
    }
    const job = { batch, pack, firstItem }
    this.#jobs.add(job)
    this.#items += batch.items
    this.#bytes += batch.plainBytes
    this.#last = this.#last.then(() => this.#work(job))
  }

  /** Hands on what there is as it is, without waiting for a thread pool that others may block. */
  handOn(): void {
    for (const job of this.#jobs) this.#finish(job, job.batch)
  }

  async #work(job: Job): Promise<void> {
    if (!this.#jobs.has(job)) return
    const { batch, pack } = job
    let packed = batch
    try {
      if (pack !== undefined) packed = await pack(batch)
    } catch {
      // As it is, it can be sent as well.
    }
    if (this.#finish(job, packed) && packed !== batch) batch.free?.()
  }

  /** False: it was handed on before, as it is. */
  #finish(job: Job, packed: Batch): boolean {
    if (!this.#jobs.delete(job)) return false
    this.#items -= job.batch.items
    this.#bytes -= job.batch.plainBytes
    this.#out(packed)
    return true
  }
}
