// Encodes and decodes D-Bus values (specification 0.43, "Type System" and "Marshaling"). Input is foreign: every
// length, depth and padding is checked before anything is built from it.

import { isUtf8 } from 'node:buffer'

/**
 * A value by signature: y n q i u d h are numbers, x t bigints, b booleans, s o g strings, `ay` is a Uint8Array, any
 * other array a list, a struct a list of its fields, a dictionary a list of pairs, and v a `DBusVariant`.
 */
export type DBusValue = number | bigint | boolean | string | Uint8Array | readonly DBusValue[] | DBusVariant

export interface DBusVariant {
  readonly signature: string
  readonly value: DBusValue
}

/** Maximum nesting of arrays, structs and variants. */
const mostDepth = 32
/** Maximum values in a message, so that a body of 16 MiB does not become gigabytes of lists. */
const mostValues = 1 << 19

interface Type {
  readonly code: string
  /** Types of an array's elements, or of the fields of a struct or dictionary entry. */
  readonly parts: readonly Type[]
}

const alignments: Readonly<Record<string, number>> = {
  ...{
    y: 1,
    g: 1,
    v: 1,
    n: 2,
    q: 2,
    b: 4,
    i: 4,
    u: 4,
    s: 4,
    o: 4,
    a: 4,
    h: 4,
    x: 8,
    t: 8,
    d: 8,
    '(': 8,
    '{': 8,
  },
}

/** The complete types in a signature. Throws if it is invalid. */
function parseSignature(signature: string): readonly Type[] {
  if (signature.length > 255) throw new Error('a signature is longer than 255 characters')
  let at = 0
  const wrong = () => new Error(`"${signature.replace(/[^!-~]/g, '?')}" is not a signature`)
  const one = (depth: number, inArray: boolean): Type => {
    const code = signature[at++]
    if (code === undefined || depth > mostDepth || !Object.hasOwn(alignments, code)) throw wrong()
    if (code === 'a') return { code, parts: [one(depth + 1, true)] }
    if (code !== '(' && code !== '{') return { code, parts: [] }
    const end = code === '(' ? ')' : '}'
    const parts: Type[] = []
    while (at < signature.length && signature[at] !== end) parts.push(one(depth + 1, false))
    if (signature[at++] !== end || parts.length === 0) throw wrong()
    const isEntry = inArray && parts.length === 2 && !'av({'.includes(parts[0]!.code)
    if (code === '{' && !isEntry) throw wrong()
    return { code, parts }
  }
  const types: Type[] = []
  while (at < signature.length) types.push(one(0, false))
  return types
}

/** Writes values, little-endian. Throws if a value does not match its type: a mistake of the caller. */
export class DBusWriter {
  #bytes = Buffer.alloc(256)
  #at = 0

  write(signature: string, values: readonly DBusValue[]): void {
    const types = parseSignature(signature)
    if (types.length !== values.length)
      throw new Error(`cannot write "${signature}": there are ${values.length} values`)
    for (const [i, type] of types.entries()) this.#value(type, values[i]!, 0)
  }

  align(to: number): void {
    this.#at = this.#room((to - (this.#at % to)) % to) // padding is zero
  }

  /** A copy of the written bytes. */
  bytes(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#at))
  }

  /** Reserves bytes and returns their end. */
  #room(size: number): number {
    const end = this.#at + size
    if (end > this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes], Math.max(end, 2 * this.#bytes.length))
    return end
  }

  #value(type: Type, value: DBusValue, depth: number): void {
    const { code, parts } = type
    if (depth > mostDepth) throw new Error('cannot write a value: it is nested too deeply')
    this.align(alignments[code]!)
    const at = this.#at
    const end = this.#room(sizes[code] ?? 0)
    const bytes = this.#bytes
    this.#at = end
    if (code === 'y') bytes.writeUInt8(value as number, at)
    else if (code === 'n') bytes.writeInt16LE(value as number, at)
    else if (code === 'q') bytes.writeUInt16LE(value as number, at)
    else if (code === 'i') bytes.writeInt32LE(value as number, at)
    else if (code === 'u' || code === 'h') bytes.writeUInt32LE(value as number, at)
    else if (code === 'x') bytes.writeBigInt64LE(value as bigint, at)
    else if (code === 't') bytes.writeBigUInt64LE(value as bigint, at)
    else if (code === 'd') bytes.writeDoubleLE(value as number, at)
    else if (code === 'b') bytes.writeUInt32LE(value === true ? 1 : 0, at)
    else if (code === 's' || code === 'o' || code === 'g') this.#text(code, value as string)
    else if (code === 'v') {
      const variant = value as DBusVariant
      const [inner, ...more] = parseSignature(variant.signature)
      if (inner === undefined || more.length > 0)
        throw new Error('cannot write a variant: not exactly one type')
      this.#text('g', variant.signature)
      this.#value(inner, variant.value, depth + 1)
    } else if (code === 'a') this.#array(parts[0]!, value as Uint8Array | readonly DBusValue[], depth)
    else {
      const fields = value as readonly DBusValue[]
      if (fields.length !== parts.length) throw new Error('cannot write a struct: wrong number of fields')
      for (const [i, part] of parts.entries()) this.#value(part, fields[i]!, depth + 1)
    }
  }

  #text(code: string, text: string): void {
    const size = Buffer.byteLength(text)
    if (/[\0\p{Surrogate}]/u.test(text) || (code === 'o' && !isObjectPath(text)))
      throw new Error('cannot write a text: D-Bus does not allow its characters')
    const start = this.#at + (code === 'g' ? 1 : 4)
    const end = this.#room(start - this.#at + size + 1)
    if (code === 'g') this.#bytes.writeUInt8(size, this.#at)
    else this.#bytes.writeUInt32LE(size, this.#at)
    this.#bytes.write(text, start)
    this.#bytes[end - 1] = 0
    this.#at = end
  }

  #array(element: Type, values: Uint8Array | readonly DBusValue[], depth: number): void {
    const lengthAt = this.#at
    this.#at = this.#room(4)
    this.align(alignments[element.code]!)
    const start = this.#at
    for (const value of values) this.#value(element, value, depth + 1)
    this.#bytes.writeUInt32LE(this.#at - start, lengthAt)
  }
}

const sizes: Readonly<Record<string, number>> = {
  ...{ y: 1, n: 2, q: 2, b: 4, i: 4, u: 4, h: 4, x: 8, t: 8, d: 8 },
}

function isObjectPath(text: string): boolean {
  return text === '/' || /^(\/[A-Za-z0-9_]+)+$/.test(text)
}

/** Reads values of either endianness. Throws at the first invalid byte. */
export class DBusReader {
  readonly #bytes: Buffer
  readonly #little: boolean
  #at = 0
  #values = 0

  constructor(bytes: Buffer, littleEndian: boolean) {
    this.#bytes = bytes
    this.#little = littleEndian
  }

  get at(): number {
    return this.#at
  }

  read(signature: string): readonly DBusValue[] {
    return parseSignature(signature).map(type => this.#value(type, 0))
  }

  align(to: number): void {
    const end = this.#skip((to - (this.#at % to)) % to, 0)
    for (let at = this.#at; at < end; at++) if (this.#bytes[at] !== 0) throw new Error('padding is not zero')
    this.#at = end
  }

  /** The offset after `size` bytes. Throws if the message ends before that, or before `after` more. */
  #skip(size: number, after: number): number {
    const end = this.#at + size
    if (end + after > this.#bytes.length) throw new Error('a value is larger than its message')
    return end
  }

  #value(type: Type, depth: number): DBusValue {
    const { code, parts } = type
    if (depth > mostDepth) throw new Error('a value is nested too deeply')
    if (++this.#values > mostValues) throw new Error(`a message has more than ${mostValues} values`)
    this.align(alignments[code]!)
    if (code === 's' || code === 'o' || code === 'g') return this.#text(code)
    if (code === 'a') return this.#array(parts[0]!, depth)
    if (code === '(' || code === '{') return parts.map(part => this.#value(part, depth + 1))
    if (code !== 'v') return this.#fixed(code)
    const signature = this.#text('g')
    const [inner, ...more] = parseSignature(signature)
    if (inner === undefined || more.length > 0) throw new Error('a variant does not have exactly one type')
    return { signature, value: this.#value(inner, depth + 1) }
  }

  #fixed(code: string): number | bigint | boolean {
    const at = this.#at
    const end = this.#skip(sizes[code]!, 0)
    const bytes = this.#bytes
    const little = this.#little
    this.#at = end
    if (code === 'y') return bytes[at]!
    if (code === 'n') return little ? bytes.readInt16LE(at) : bytes.readInt16BE(at)
    if (code === 'q') return little ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
    if (code === 'i') return little ? bytes.readInt32LE(at) : bytes.readInt32BE(at)
    if (code === 'x') return little ? bytes.readBigInt64LE(at) : bytes.readBigInt64BE(at)
    if (code === 't') return little ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at)
    if (code === 'd') return little ? bytes.readDoubleLE(at) : bytes.readDoubleBE(at)
    const number = little ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
    if (code !== 'b') return number
    if (number > 1) throw new Error('a boolean is neither true nor false')
    return number === 1
  }

  #text(code: string): string {
    const size = code === 'g' ? (this.#fixed('y') as number) : (this.#fixed('u') as number)
    const end = this.#skip(size, 1)
    const raw = this.#bytes.subarray(this.#at, end)
    if (this.#bytes[end] !== 0 || raw.includes(0) || !isUtf8(raw)) throw new Error('invalid string')
    this.#at = end + 1
    const text = raw.toString('utf8')
    if (code === 'o' && !isObjectPath(text)) throw new Error('invalid object path')
    return text
  }

  #array(element: Type, depth: number): Uint8Array | readonly DBusValue[] {
    const size = this.#fixed('u') as number
    this.align(alignments[element.code]!)
    const start = this.#at
    const end = this.#skip(size, 0)
    if (element.code === 'y') {
      this.#at = end
      return new Uint8Array(this.#bytes.subarray(start, end))
    }
    const values: DBusValue[] = []
    while (this.#at < end) values.push(this.#value(element, depth + 1))
    if (this.#at !== end) throw new Error('the length of an array is wrong')
    return values
  }
}
