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
 * The constant text of a page: all that is no value and no timestamp. A page with the same text is read by comparing
 * it piece by piece, and reading nothing but the numbers between.
 *
 *     # TYPE a gauge⏎a{b="c"} 17⏎a{b="d"} 2.5⏎
 *     └──── chunk 0 ────────┘  └─ chunk 1 ─┘ └ tail
 */
export class PageLayout {
  readonly samples: number
  readonly #format: Page['format']
  readonly #numbers = new NumberBytes()
  /** The chunks, one behind the other, each with the blanks before its sample's timestamp behind it; then the tail. */
  #text: Buffer
  #words: DataView = noView
  /** Chunks may be compared as numbers of 64 bits, see `layOut`. */
  #byWords = false
  /** Where each chunk begins in the text; at last the tail. */
  readonly #chunks: Uint32Array
  /** Where each key begins in the text. */
  readonly #keys: Uint32Array
  /** Bytes between value and timestamp; 0: the sample has no timestamp. Undefined: none has one. */
  readonly #gaps: Uint32Array | undefined
  /** Samples with an exemplar. Undefined: none has one. */
  readonly #withExemplars: Uint8Array | undefined
  /** A number stands right behind a name. With another one it may be a part of it, so this page is read as a whole. */
  #unfit = false
  #exemplars: ReadonlyMap<number, LineExemplar> = noExemplars
  #view: DataView = noView
  #body: Buffer = noBody
  /** Where reading goes on: in the samples, and in the body. */
  #sample = 0
  #at = 0
  /** Bytes of the text so far. */
  #length = 0

  /** Takes a page, of which at most so many samples at once. Where it has more, `layOut` goes on with them. */
  constructor(page: Page, most = Number.POSITIVE_INFINITY) {
    const { body, samples } = page
    this.samples = samples
    this.#format = page.format
    this.#chunks = new Uint32Array(samples + 1)
    this.#keys = new Uint32Array(samples)
    this.#gaps = page.timesUs.every(Number.isNaN) ? undefined : new Uint32Array(samples)
    this.#withExemplars = page.exemplars.size === 0 ? undefined : new Uint8Array(samples)
    this.#exemplars = page.exemplars
    // Its own memory: a buffer of the pool would be kept as a whole.
    this.#text = Buffer.allocUnsafeSlow(body.length)
    this.layOut(page, most)
  }

  /** Takes at most so many more samples of its page. False: there are more, and nothing else may be asked yet. */
  layOut(page: Page, most: number): boolean {
    if (!this.#laySamples(page, Math.min(page.samples, this.#sample + most))) return false
    const text = this.#text
    const length = this.#length + page.body.copy(text, this.#length, this.#at)
    this.#text = Buffer.allocUnsafeSlow(length)
    text.copy(this.#text, 0, 0, length)
    this.#words = new DataView(this.#text.buffer)
    // No word of UTF-8 is the encoding of a NaN (0x7f does not follow a byte from 0xf0 on), and without NULs none is 0.
    this.#byWords = isUtf8(this.#text) && !this.#text.includes(0)
    return true
  }

  /** Of the memory that it keeps, but for exemplars. */
  get sizeBytes(): number {
    return (
      this.#text.length +
      this.#chunks.byteLength +
      this.#keys.byteLength +
      (this.#gaps?.byteLength ?? 0) +
      (this.#withExemplars?.byteLength ?? 0)
    )
  }

  /** Those of the page that was read last, by sample. */
  get exemplars(): ReadonlyMap<number, LineExemplar> {
    return this.#exemplars
  }

  /**
   * Whether the body has the text of this page, with other numbers or the same. Then the value of each sample was
   * written, and the time of each that has a timestamp. False: it differs in something else, or cannot be read, and
   * values were written up to there.
   */
  read(body: Buffer, values: Float64Array, timesUs: Float64Array): boolean {
    this.begin(body)
    return this.go(values, timesUs, this.samples) === true
  }

  /** The same in slices: `begin`, then `go` until it tells. */
  begin(body: Buffer): void {
    this.#body = body
    this.#view = new DataView(body.buffer, body.byteOffset, body.length)
    this.#sample = 0
    this.#at = 0
    if (this.#withExemplars !== undefined) this.#exemplars = new Map()
  }

  /** Reads at most so many samples on. Undefined: there are more. */
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
        // The last word has some bytes of the one before.
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

  /** Name and labels of a sample: a part of the layout's own memory. */
  keyBytes(sample: number): Buffer {
    const text = this.#text
    let to = this.#chunks[sample + 1]! - (this.#gaps?.[sample] ?? 0)
    while (isBlank(text[to - 1])) to--
    return text.subarray(this.#keys[sample]!, to)
  }

  /**
   * Whether a sample has the same key, with the same lines of comments since the line of the sample before, as a sample
   * of another layout, and both have a timestamp or none.
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

  /** The first chunk has no line before it. */
  #lineFrom(sample: number): number {
    const from = this.#chunks[sample]!
    return sample === 0 ? from : this.#text.indexOf(newline, from) + 1
  }

  /** Whether these were the last ones. */
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

  /** Where it ends; -1: there is none. */
  #exemplar(sample: number, at: number): number {
    const body = this.#body
    if (!exemplarBegins(body, at, body.length)) return -1
    const exemplar = exemplarBytes.read(body, at, body.length)
    if (exemplar === undefined) return -1
    ;(this.#exemplars as Map<number, LineExemplar>).set(sample, exemplar)
    return exemplarBytes.end
  }

  /** Whether a part of the text stands there in the body. */
  #same(from: number, to: number, at: number): boolean {
    const bytes = to - from
    if (bytes > 16) return this.#body.compare(this.#text, from, to, at, at + bytes) === 0
    for (let i = 0; i < bytes; i++) if (this.#text[from + i] !== this.#body[at + i]) return false
    return true
  }

  /** Keeps no body. */
  #end(same: boolean): boolean {
    this.#body = noBody
    this.#view = noView
    return same
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab
}
