import { batchCursor, batchDone, type MapHandle, type Native } from './native.ts'

/** How long a count is shown before the map is counted anew, as that reads all of it: */
const freshMs = 10_000
/** and no oftener than for 1 % of the time. */
const restShare = 100
const batchEntries = 64
/** A map whose elements come and go while it is counted may be walked for longer than it is. */
const mostWalks = 2

/** How many entries a map has, counted a batch at a time. */
export class MapEntries {
  readonly #native: Native
  readonly #map: MapHandle
  readonly #isCounted: boolean
  #known: number | undefined
  /** Of the first count, while it is under way. */
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

  /** As of the last count; while there was none, what it has found so far. */
  get count(): number {
    return this.#known ?? this.#sofar
  }

  /** Counts anew, a batch with each step. Where the map is closed meanwhile, it ends. */
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
      // Its object was closed, or the kernel has no memory for the answer: the last count stands.
    }
    this.#staleMs = performance.now() + Math.max(freshMs, restShare * tookMs)
  }
}
