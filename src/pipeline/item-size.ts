import type { Signal } from '../model/signal.ts'

/**
 * Bytes of an item as it waits, compressed, until a batch was seen: those of an agent with its defaults on a host with little
 * to do (2026-11).
 */
export const usualItemBytes: Readonly<Record<Signal, number>> = {
  traces: 100,
  metrics: 20,
  logs: 40,
  profiles: 2000,
}

/** The mean size of the items of one signal as they wait. */
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

  /** Items that were counted. */
  get items(): number {
    return this.#items
  }

  /** How many items fit into so many bytes. */
  fitting(bytes: number): number {
    return Math.floor(this.#items === 0 ? bytes / this.#usual : (bytes * this.#items) / this.#bytes)
  }
}
