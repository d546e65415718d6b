import { batchCursor, batchDone, type MapHandle, type Native } from './native.ts'

/** How long a count is used before the map is counted again, which reads all of it: */
const freshMs = 10_000
/** and at most 1 % of the time. */
const restShare = 100
const batchEntries = 64
/** Walks beyond the map's size, as elements may come and go during the count. */
const mostWalks = 2

/** Counts a map's entries, one batch at a time. */
export class MapEntries {
  readonly #native: Native
  readonly #map: MapHandle
  readonly #isCounted: boolean
  #known: number | undefined
  /** The first count, while in progress. */
  #sofar = 0
  #staleMs = Number.NEGATIVE_INFINITY

  constructor(native: Native, map: MapHandle) {
    this.#native = native
    this.#map = map
    this.#isCounted = map.type.endsWith('hash')
    if (!this.#isCounted) this.#known = map.type.endsWith('array') ? map.maxEntries : 0
  }

  get isStale(): boolean {
    return this.#isCounted && performance.now() >= this.#staleMs
  }

  /** The last count; before the first one is complete, its result so far. */
  get count(): number {
    return this.#known ?? this.#sofar
  }

  /** Counts again, one batch per step. Ends if the map is closed. */
  *counts(): Generator<void> {
    const native = this.#native
    const map = this.#map
    let tookMs = 0
    this.#staleMs = Number.POSITIVE_INFINITY
    try {
      const keys = Buffer.alloc(batchEntries * map.keySize)
      const values = Buffer.alloc(batchEntries * map.slotSize)
      const cursor = batchCursor(map)
      let count = 0
      while (!batchDone(cursor) && count <= mostWalks * map.maxEntries) {
        const beganMs = performance.now()
        count += native.mapReadBatch(map, cursor, keys, values, false)
        tookMs += performance.now() - beganMs
        this.#sofar = count
        yield
      }
      this.#known = Math.min(count, map.maxEntries)
    } catch {
      // Its object was closed, or the kernel has no memory for the answer: keep the last count.
    }
    this.#staleMs = performance.now() + Math.max(freshMs, restShare * tookMs)
  }
}
