import type { Signal } from '../foundation/model/signal.ts'

/**
 * Compressed bytes per item before the first batch: those of an agent with default settings on a host with little
 * load (2026-11).
 */
export const usualItemBytes: Readonly<Record<Signal, number>> = {
  traces: 100,
  metrics: 20,
  logs: 40,
  profiles: 2000,
}

/** Mean size of the queued items of one signal. */
export class ItemSize {
  #items = 0
  #bytes = 0
  readonly #usual: number

  constructor(signal: Signal) {
    this.#usual = usualItemBytes[signal]
  }

  /** Counts a batch. */
  add(items: number, bytes: number): void {
    this.#items += items
    this.#bytes += bytes
  }

  /** Counted items. */
  get items(): number {
    return this.#items
  }

  /** Number of items that take this many bytes. */
  fitting(bytes: number): number {
    return Math.floor(this.#items === 0 ? bytes / this.#usual : (bytes * this.#items) / this.#bytes)
  }
}
