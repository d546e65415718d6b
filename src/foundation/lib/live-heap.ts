import { getHeapStatistics } from 'node:v8'

/**
 * Bytes on V8's heap that were alive after the last full collection. What is used at another moment holds garbage and
 * says little: up to half of it.
 *
 * V8 looks at registered objects in full collections alone, so that an object that nobody holds tells of each: without
 * an observer of all collections, which makes an entry for each of the young generation, of which there are hundreds a
 * second.
 */
export class LiveHeap {
  #bytes = getHeapStatistics().used_heap_size
  #collections = 0
  readonly #registry = new FinalizationRegistry<undefined>(() => {
    this.#collections++
    this.#bytes = getHeapStatistics().used_heap_size
    this.#watch()
  })

  constructor() {
    this.#watch()
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Full collections since the start. */
  get collections(): number {
    return this.#collections
  }

  #watch(): void {
    this.#registry.register({}, undefined)
  }
}
