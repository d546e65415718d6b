/** V8's bytes of a text besides its characters. */
const textBytes = 16

/**
 * Converts ranges of bytes to strings and returns the same string object for the same bytes, so that recurring names
 * cost no allocation. Bytes are read as Latin-1.
 *
 * A two-way table: a value displaces at most one other, so a flood of rare values costs misses but no memory beyond
 * `slots * maxLength` characters. Values longer than `maxLength` are decoded each time.
 */
export class Interner {
  /** Values decoded since the start. */
  misses = 0
  #held = 0
  readonly #texts: string[]
  readonly #hashes: Int32Array
  readonly #mask: number
  readonly #maxLength: number

  /** `slots` is rounded up to a power of two. */
  constructor(options: { readonly slots: number; readonly maxLength: number }) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(2, options.slots)))
    this.#texts = new Array<string>(slots).fill('')
    this.#hashes = new Int32Array(slots)
    this.#mask = slots - 2
    this.#maxLength = options.maxLength
  }

  /** Approximate bytes of all texts. */
  get bytes(): number {
    return this.#held
  }

  /** Drops all texts and returns their bytes. */
  shed(): number {
    const held = this.#held
    this.#held = 0
    this.#texts.fill('')
    this.#hashes.fill(0)
    return held
  }

  /** The text of `bytes[start, end)`, which must be inside of `bytes`. */
  intern(bytes: Buffer, start: number, end: number): string {
    if (end <= start) return ''
    const length = end - start
    if (length > this.#maxLength) {
      this.misses++
      return bytes.toString('latin1', start, end)
    }
    const hash = hashOf(bytes, start, end)
    const slot = hash & this.#mask
    const first = this.#texts[slot]!
    if (this.#hashes[slot] === hash && equal(first, bytes, start, length)) return first
    const second = this.#texts[slot + 1]!
    if (this.#hashes[slot + 1] === hash && equal(second, bytes, start, length)) return second
    this.misses++
    const text = bytes.toString('latin1', start, end)
    this.#held += length + (second === '' ? textBytes : -second.length)
    this.#texts[slot + 1] = first
    this.#hashes[slot + 1] = this.#hashes[slot]!
    this.#texts[slot] = text
    this.#hashes[slot] = hash
    return text
  }
}

/** FNV-1a over about 32 bytes at most, evenly spread: the comparison detects differences elsewhere. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  const length = end - start
  const step = 1 + (length >> 5)
  let hash = 0x811c9dc5 ^ length
  for (let at = start; at < end; at += step) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  hash = Math.imul(hash ^ bytes[end - 1]!, 0x01000193)
  // The low bits select the slot, so mix the high ones in.
  return hash ^ (hash >>> 15)
}

function equal(text: string, bytes: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false
  return true
}
