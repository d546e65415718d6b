import { isUtf8 } from 'node:buffer'
import type { LineExemplar, Page } from './exposition.ts'
import { ExemplarBytes, exemplarBegins } from './line-exemplar.ts'
import { NumberBytes } from './number-bytes.ts'

const newline = 10
const space = 32
const tab = 9
const close = 125

const exemplarBytes = new ExemplarBytes()
const noBody = Buffer.alloc(0)
const noView = new DataView(new ArrayBuffer(0))
const noExemplars: ReadonlyMap<number, LineExemplar> = new Map()

/**
 * Constant text of a page: all but values and timestamps. A page with the same text is read by comparing its chunks and
 * parsing only the numbers between them.
 *
 *     # TYPE a gauge⏎a{b="c"} 17⏎a{b="d"} 2.5⏎
 *     └──── chunk 0 ────────┘  └─ chunk 1 ─┘ └ tail
 */
export class PageLayout {
  readonly samples: number
  readonly #format: Page['format']
  readonly #numbers = new NumberBytes()
  /** All chunks in order, each followed by the blanks before its sample's timestamp; then the tail. */
  #text: Buffer
  #words: DataView = noView
  /** Whether chunks can be compared as 64-bit numbers, see `layOut`. */
  #byWords = false
  /** Start of each chunk in the text; the last element is that of the tail. */
  readonly #chunks: Uint32Array
  /** Start of each key in the text. */
  readonly #keys: Uint32Array
  /** Bytes between value and timestamp; 0 for a sample without a timestamp. Undefined if no sample has one. */
  readonly #gaps: Uint32Array | undefined
  /** Samples with an exemplar. Undefined if there are none. */
  readonly #withExemplars: Uint8Array | undefined
  /**
   * A number directly follows a name. Another number could become part of the name, so the page is always parsed in
   * full.
   */
  #unfit = false
  #exemplars: ReadonlyMap<number, LineExemplar> = noExemplars
  #view: DataView = noView
  #body: Buffer = noBody
  /** Position of the reading: sample index and offset in the body. */
  #sample = 0
  #at = 0
  /** Length of the text so far. */
  #length = 0

  /**
   * Makes the layout of a page, of its first `most` samples. If it has more, `layOut` must be called until it is
   * complete.
   */
  constructor(page: Page, most = Number.POSITIVE_INFINITY) {
    const { body, samples } = page
    this.samples = samples
    this.#format = page.format
    this.#chunks = new Uint32Array(samples + 1)
    this.#keys = new Uint32Array(samples)
    this.#gaps = page.timesUs.every(Number.isNaN) ? undefined : new Uint32Array(samples)
    this.#withExemplars = page.exemplars.size === 0 ? undefined : new Uint8Array(samples)
    this.#exemplars = page.exemplars
    // Not from the pool, whose buffer would be retained.
    this.#text = Buffer.allocUnsafeSlow(body.length)
    this.layOut(page, most)
  }

  /**
   * Adds at most `most` samples of the page. False if there are more; until it returns true nothing else may be called.
   */
  layOut(page: Page, most: number): boolean {
    if (!this.#laySamples(page, Math.min(page.samples, this.#sample + most))) return false
    const text = this.#text
    const length = this.#length + page.body.copy(text, this.#length, this.#at)
    this.#text = Buffer.allocUnsafeSlow(length)
    text.copy(this.#text, 0, 0, length)
    this.#words = new DataView(this.#text.buffer)
    // No 64-bit word of valid UTF-8 is a NaN (0x7f does not follow a byte from 0xf0 on), and without NULs none is 0.
    this.#byWords = isUtf8(this.#text) && !this.#text.includes(0)
    return true
  }

  /** Memory, in bytes, without exemplars. */
  get sizeBytes(): number {
    return (
      this.#text.length +
      this.#chunks.byteLength +
      this.#keys.byteLength +
      (this.#gaps?.byteLength ?? 0) +
      (this.#withExemplars?.byteLength ?? 0)
    )
  }

  /** Exemplars of the last page, by sample index. */
  get exemplars(): ReadonlyMap<number, LineExemplar> {
    return this.#exemplars
  }

  /**
   * Whether the body has the same text, apart from the numbers. If so, the value of each sample and the time of each
   * timestamp are written. If not, or if a number is invalid, values are written up to there.
   */
  read(body: Buffer, values: Float64Array, timesUs: Float64Array): boolean {
    this.begin(body)
    return this.go(values, timesUs, this.samples) === true
  }

  /** `read` in slices: call `begin`, then `go` until it returns a result. */
  begin(body: Buffer): void {
    this.#body = body
    this.#view = new DataView(body.buffer, body.byteOffset, body.length)
    this.#sample = 0
    this.#at = 0
    if (this.#withExemplars !== undefined) this.#exemplars = new Map()
  }

  /** Reads at most `most` further samples. Undefined if there are more. */
  go(values: Float64Array, timesUs: Float64Array, most: number): boolean | undefined {
    if (this.#unfit) return this.#end(false)
    const body = this.#body
    const view = this.#view
    const chunks = this.#chunks
    const words = this.#words
    const gaps = this.#gaps
    const numbers = this.#numbers
    const byWords = this.#byWords
    const { length } = body
    const last = Math.min(this.samples, this.#sample + most)
    let at = this.#at
    for (let i = this.#sample; i < last; i++) {
      let from = chunks[i]!
      let to = chunks[i + 1]!
      const gap = gaps === undefined ? 0 : gaps[i]!
      to -= gap
      const bytes = to - from
      if (at + bytes > length) return this.#end(false)
      if (byWords && bytes >= 8) {
        const stop = at + bytes - 8
        for (; at < stop; from += 8, at += 8)
          if (view.getFloat64(at, true) !== words.getFloat64(from, true)) return this.#end(false)
        // The last word overlaps the previous one.
        if (view.getFloat64(stop, true) !== words.getFloat64(to - 8, true)) return this.#end(false)
        at = stop + 8
      } else {
        if (!this.#same(from, to, at)) return this.#end(false)
        at += bytes
      }
      values[i] = numbers.read(body, at, length)
      at = numbers.end
      if (at < 0) return this.#end(false)
      if (gap > 0) {
        if (at + gap > length || !this.#same(to, to + gap, at)) return this.#end(false)
        at += gap
        timesUs[i] = this.#time(at)
        at = numbers.end
        if (at < 0) return this.#end(false)
      }
      if (this.#withExemplars !== undefined && this.#withExemplars[i] === 1) {
        at = this.#exemplar(i, at)
        if (at < 0) return this.#end(false)
      }
    }
    this.#sample = last
    this.#at = at
    if (last < this.samples) return undefined
    const tail = chunks[last]!
    return this.#end(at + this.#text.length - tail === length && this.#same(tail, this.#text.length, at))
  }

  /** Name and labels of a sample, as a view of the layout's memory. */
  keyBytes(sample: number): Buffer {
    const text = this.#text
    let to = this.#chunks[sample + 1]! - (this.#gaps?.[sample] ?? 0)
    while (isBlank(text[to - 1])) to--
    return text.subarray(this.#keys[sample]!, to)
  }

  /**
   * Whether a sample has the same key as a sample of another layout, with the same comment lines since the previous
   * sample line, and both or neither have a timestamp.
   */
  chunkEquals(sample: number, other: PageLayout, otherSample: number): boolean {
    if ((this.#gaps?.[sample] ?? 0) > 0 !== (other.#gaps?.[otherSample] ?? 0) > 0) return false
    const from = this.#lineFrom(sample)
    const otherFrom = other.#lineFrom(otherSample)
    const to = this.#chunks[sample + 1]! - (this.#gaps?.[sample] ?? 0)
    const otherTo = other.#chunks[otherSample + 1]! - (other.#gaps?.[otherSample] ?? 0)
    return (
      to - from === otherTo - otherFrom && this.#text.compare(other.#text, otherFrom, otherTo, from, to) === 0
    )
  }

  /** The first chunk has no previous line. */
  #lineFrom(sample: number): number {
    const from = this.#chunks[sample]!
    return sample === 0 ? from : this.#text.indexOf(newline, from) + 1
  }

  /** Returns whether all samples are done. */
  #laySamples({ body, samples, keyFrom, keyTo, timesUs, exemplars }: Page, last: number): boolean {
    const text = this.#text
    let at = this.#at
    let length = this.#length
    for (let i = this.#sample; i < last; i++) {
      let value = keyTo[i]!
      while (isBlank(body[value])) value++
      if (value === keyTo[i] && body[value - 1] !== close) this.#unfit = true
      this.#chunks[i] = length
      this.#keys[i] = length + keyFrom[i]! - at
      length += body.copy(text, length, at, value)
      this.#numbers.read(body, value, body.length)
      at = this.#numbers.end
      if (!Number.isNaN(timesUs[i])) {
        const gap = at
        while (isBlank(body[at])) at++
        this.#gaps![i] = at - gap
        length += body.copy(text, length, gap, at)
        this.#body = body
        this.#time(at)
        at = this.#numbers.end
      }
      if (exemplars.has(i)) {
        this.#withExemplars![i] = 1
        exemplarBytes.read(body, at, body.length)
        at = exemplarBytes.end
      }
    }
    this.#body = noBody
    this.#sample = last
    this.#at = at
    this.#length = length
    this.#chunks[last] = length
    return last === samples
  }

  #time(at: number): number {
    return this.#format === 'openmetrics'
      ? this.#numbers.readSeconds(this.#body, at, this.#body.length)
      : this.#numbers.readMilliseconds(this.#body, at, this.#body.length)
  }

  /** Returns the end of the exemplar; -1 if it is invalid. */
  #exemplar(sample: number, at: number): number {
    const body = this.#body
    if (!exemplarBegins(body, at, body.length)) return -1
    const exemplar = exemplarBytes.read(body, at, body.length)
    if (exemplar === undefined) return -1
    ;(this.#exemplars as Map<number, LineExemplar>).set(sample, exemplar)
    return exemplarBytes.end
  }

  /** Whether a range of the text is in the body at `at`. */
  #same(from: number, to: number, at: number): boolean {
    const bytes = to - from
    if (bytes > 16) return this.#body.compare(this.#text, from, to, at, at + bytes) === 0
    for (let i = 0; i < bytes; i++) if (this.#text[from + i] !== this.#body[at + i]) return false
    return true
  }

  /** Releases the body. */
  #end(same: boolean): boolean {
    this.#body = noBody
    this.#view = noView
    return same
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab
}
