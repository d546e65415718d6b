import { getHeapStatistics } from 'node:v8'

/**
 * Live bytes on V8's heap after the last full collection. At other times the usage includes up to 50 % garbage.
 *
 * V8 checks registered objects only in full collections, so an unreferenced object signals each of them. An observer of
 * all collections would create an entry for each minor one, of which there are hundreds a second.
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
