/** Types of BSON elements (bsonspec.org, version 1.1) that are distinguished here. */
export const bsonType = {
  double: 0x01,
  string: 0x02,
  document: 0x03,
  array: 0x04,
  boolean: 0x08,
  int32: 0x10,
  int64: 0x12,
} as const

/** Sizes of values by type; -1: variable, undefined: there is no such type. */
const sizes: readonly (number | undefined)[] = [
  undefined, // 0x00 ends a document
  8, // double
  -1, // string
  -1, // document
  -1, // array
  -1, // binary
  0, // undefined
  12, // object id
  1, // boolean
  8, // date
  0, // null
  -1, // regular expression
  -1, // pointer
  -1, // code
  -1, // symbol
  -1, // code with scope
  4, // int32
  8, // timestamp
  8, // int64
  16, // decimal
]

/**
 * Iterates over the elements of one document, which may be truncated. It ends at an invalid length, and skips values
 * without looking inside.
 */
export class BsonWalk {
  bytes: Buffer = Buffer.alloc(0)
  /** The current element. Its value may reach beyond the available bytes. */
  type = 0
  nameStart = 0
  nameEnd = 0
  valueStart = 0
  valueEnd = 0
  /** End of the available bytes. */
  #end = 0

  /**
   * Starts at the document whose length is at `start`; `end` is the end of the available bytes. False if it is not a
   * document.
   */
  open(bytes: Buffer, start: number, end: number): boolean {
    this.bytes = bytes
    this.valueEnd = end
    this.#end = end
    if (end - start < 5) return false
    const length = bytes.readInt32LE(start)
    if (length < 5) return false
    this.#end = Math.min(end, start + length)
    this.valueEnd = start + 4
    return true
  }

  /** Moves to the next element whose name is available. False if there is none. */
  next(): boolean {
    const { bytes } = this
    const end = this.#end
    let at = this.valueEnd
    if (at >= end) return false
    this.type = bytes[at++]!
    this.nameStart = at
    while (at < end && bytes[at] !== 0) at++
    if (at >= end || this.type === 0) return false
    this.nameEnd = at
    this.valueStart = at + 1
    this.valueEnd = this.valueStart + this.#size()
    return true
  }

  /** Whether the element's name is this text, which is ASCII. */
  named(name: string): boolean {
    return sameText(this.bytes, this.nameStart, this.nameEnd, name)
  }

  /** The whole value is available. */
  get whole(): boolean {
    return this.valueEnd <= this.#end
  }

  /** End of the available part of the value. */
  get limit(): number {
    return Math.min(this.valueEnd, this.#end)
  }

  /** Start of the current string, without its terminator; the whole value must be available. */
  get textStart(): number {
    return this.valueStart + 4
  }

  get textEnd(): number {
    return this.valueEnd - 1
  }

  /** The current number; NaN if it is none, or not available. */
  get number(): number {
    if (!this.whole) return Number.NaN
    const { bytes, valueStart } = this
    if (this.type === bsonType.int32) return bytes.readInt32LE(valueStart)
    if (this.type === bsonType.double) return bytes.readDoubleLE(valueStart)
    if (this.type === bsonType.boolean) return bytes[valueStart]!
    if (this.type === bsonType.int64)
      return bytes.readInt32LE(valueStart + 4) * 2 ** 32 + bytes.readUInt32LE(valueStart)
    return Number.NaN
  }

  /** Size of the value; infinite if its length is missing or invalid. */
  #size(): number {
    const { type } = this
    const fixed = sizes[type]
    if (fixed === undefined) return type === 0x7f || type === 0xff ? 0 : Number.POSITIVE_INFINITY
    if (fixed >= 0) return fixed
    if (type === 0x0b) return this.#sizeOfExpression()
    if (this.#end - this.valueStart < 4) return Number.POSITIVE_INFINITY
    const length = this.bytes.readInt32LE(this.valueStart)
    if (length < 0) return Number.POSITIVE_INFINITY
    if (type === 0x05) return length + 5
    if (type === 0x0c) return length < 1 ? Number.POSITIVE_INFINITY : length + 16
    if (type === 0x03 || type === 0x04 || type === 0x0f) return length < 5 ? Number.POSITIVE_INFINITY : length
    return length < 1 ? Number.POSITIVE_INFINITY : length + 4
  }

  /** Pattern and options, each terminated by a zero. */
  #sizeOfExpression(): number {
    let at = this.valueStart
    for (let zeros = 0; at < this.#end; at++)
      if (this.bytes[at] === 0 && ++zeros === 2) return at + 1 - this.valueStart
    return Number.POSITIVE_INFINITY
  }
}

export function sameText(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false
  return true
}

/** Number of consecutive documents in `bytes[start, end)`; -1 if they do not fill it. */
export function documentsIn(bytes: Buffer, start: number, end: number): number {
  let count = 0
  for (let at = start; at < end; count++) {
    if (end - at < 5) return -1
    const length = bytes.readInt32LE(at)
    if (length < 5 || length > end - at) return -1
    at += length
  }
  return count
}
