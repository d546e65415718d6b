import { decodeHuffman } from './hpack-huffman.ts'

/** Names of wanted header fields, numbered from 1 in the order of the list. */
export class HpackNames {
  /** By number; the first is unused. */
  readonly list: readonly string[]
  /** Numbers of the static table's names (RFC 7541, appendix A), by index; 0 for unwanted ones. */
  readonly ofStatic: Uint8Array
  readonly #byLength: (readonly { readonly number: number; readonly bytes: Buffer }[])[] = []

  constructor(names: readonly string[]) {
    this.list = ['', ...names]
    this.ofStatic = Uint8Array.from(staticTable, ([name]) => Math.max(0, this.list.indexOf(name, 1)))
    for (const [index, name] of names.entries()) {
      const same = this.#byLength[name.length] ?? []
      this.#byLength[name.length] = [...same, { number: index + 1, bytes: Buffer.from(name, 'latin1') }]
    }
  }

  /** The number of a name; 0 if it is not wanted. */
  find(bytes: Buffer, start: number, end: number): number {
    const same = this.#byLength[end - start]
    if (same === undefined) return 0
    for (const candidate of same)
      if (bytes.compare(candidate.bytes, 0, candidate.bytes.length, start, end) === 0) return candidate.number
    return 0
  }
}

/** State of a field. */
export const Known = {
  absent: 0,
  /** Its value is `bytes[start, end)`. */
  value: 1,
  /** Present, with an unknown value. */
  hidden: 2,
} as const

/** The wanted fields of one header block. Reused; the first of duplicate fields counts, unless it is a list. */
export class HpackFields {
  readonly names: HpackNames
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(maxFieldBytes)
  readonly starts: Int32Array
  readonly ends: Int32Array
  /** `Known`, by number of the name. */
  readonly known: Uint8Array
  /** Fields whose names are unknown: any absent field may be among them. */
  unknown = 0
  #length = 0
  readonly #lists: ReadonlySet<number>

  /** `lists`: names whose repeated values are joined by a comma. */
  constructor(names: HpackNames, lists: readonly string[] = []) {
    this.names = names
    this.starts = new Int32Array(names.list.length)
    this.ends = new Int32Array(names.list.length)
    this.known = new Uint8Array(names.list.length)
    this.#lists = new Set(lists.map(name => names.list.indexOf(name)))
  }

  clear(): void {
    this.known.fill(Known.absent)
    this.unknown = 0
    this.#length = 0
  }

  has(number: number): boolean {
    return this.known[number] === Known.value
  }

  /** True if the value is known and begins with `text`. */
  begins(number: number, text: string): boolean {
    const start = this.starts[number]!
    if (!this.has(number) || this.ends[number]! - start < text.length) return false
    for (let i = 0; i < text.length; i++) if (this.bytes[start + i] !== text.charCodeAt(i)) return false
    return true
  }

  /** True if the value is known and equals `text`. */
  is(number: number, text: string): boolean {
    return this.begins(number, text) && this.ends[number]! - this.starts[number]! === text.length
  }

  add(number: number, source: Buffer, start: number, end: number): void {
    const first = this.known[number] === Known.absent
    if (!first && !this.#lists.has(number)) return
    const joined = first ? 0 : this.ends[number]! - this.starts[number]! + 1
    if (this.#length + joined + end - start > maxFieldBytes) {
      if (first) this.known[number] = Known.hidden
      return
    }
    const from = this.#length
    if (!first) {
      this.bytes.copy(this.bytes, from, this.starts[number], this.ends[number])
      this.bytes[from + joined - 1] = comma
    }
    source.copy(this.bytes, from + joined, start, end)
    this.#length = from + joined + end - start
    this.known[number] = Known.value
    this.starts[number] = from
    this.ends[number] = this.#length
  }

  hide(number: number): void {
    if (this.known[number] === Known.absent) this.known[number] = Known.hidden
  }
}

/**
 * Decodes the header blocks of one direction of a connection (RFC 7541), and reports only the wanted fields. It may
 * start in the middle of a connection: indexes count from the newest entry, so entries added since are right, and older
 * ones are unknown, never wrong. Its memory is bounded; an evicted entry becomes unknown, too.
 */
export class HpackDecoder {
  /** Entries, oldest to newest: the name's number, the place of its value, its size in the table. */
  #names = new Uint8Array(0)
  #places = new Int32Array(0)
  #lengths = new Int32Array(0)
  #sizes = new Int32Array(0)
  /** Index of the oldest entry; the newest is `first + count - 1`, all modulo the arrays' length. */
  #first = 0
  #count = 0
  #size = 0
  #most: number
  #values: Buffer = nothing
  #valuesEnd = 0

  /** `joined`: the table size was negotiated before the capture began. */
  constructor(joined: boolean) {
    this.#most = joined ? joinedTableSize : defaultTableSize
  }

  /** Memory of the table in bytes. */
  get memory(): number {
    return this.#values.length + this.#names.length * slotBytes
  }

  /** Header blocks were missed: the meaning of indexes is unknown. */
  forget(): void {
    this.#first = 0
    this.#count = 0
    this.#size = 0
    this.#valuesEnd = 0
    this.#most = Math.max(this.#most, joinedTableSize)
  }

  /** Decodes a whole header block. False: it is malformed, and later blocks cannot be decoded. */
  decode(bytes: Buffer, start: number, end: number, fields: HpackFields): boolean {
    at = start
    stop = end
    while (at < stop) {
      const byte = bytes[at]!
      if (byte & 0x80) {
        const index = readInteger(bytes, 7)
        if (index < 1) return false
        this.#addIndexed(index, fields)
      } else if ((byte & 0xe0) === 0x20) {
        const most = readInteger(bytes, 5)
        if (most < 0) return false
        this.#most = Math.min(most, maxTableSize)
        this.#evict(0)
      } else if (!this.#literal(bytes, (byte & 0x40) !== 0, fields)) {
        return false
      }
    }
    return at === stop
  }

  /** A literal field; `indexed`: it becomes the newest entry. */
  #literal(bytes: Buffer, indexed: boolean, fields: HpackFields): boolean {
    const index = readInteger(bytes, indexed ? 6 : 4)
    if (index < 0) return false
    let name: number
    let nameBytes = 0
    if (index > 0) {
      name = this.#nameAt(index, fields.names)
    } else {
      if (!readString(bytes)) return false
      nameBytes = stringBytes
      name = nameIn(bytes, fields.names)
    }
    if (!readString(bytes)) return false
    const wanted = name !== 0 && name !== unknownName
    let source = bytes
    let from = stringStart
    let to = stringEnd
    if (wanted && stringCoded) {
      to = decodeHuffman(bytes, stringStart, stringEnd, scratch, 0)
      if (to < 0 && (stringEnd - stringStart) * 8 <= scratch.length * 5) return false
      source = scratch
      from = 0
    }
    if (name === unknownName) fields.unknown++
    else if (wanted && to < 0) fields.hide(name)
    else if (wanted) fields.add(name, source, from, to)
    if (indexed) this.#insert(name, nameBytes + stringBytes, source, from, wanted ? to : -1)
    return true
  }

  /** Adds the field of an index. */
  #addIndexed(index: number, fields: HpackFields): void {
    if (index < staticTable.length) {
      const name = fields.names.ofStatic[index]!
      const value = staticValues[index]!
      if (name !== 0) fields.add(name, value, 0, value.length)
      return
    }
    const slot = this.#slotOf(index)
    const name = slot < 0 ? unknownName : this.#names[slot]!
    if (name === unknownName) {
      fields.unknown++
    } else if (name !== 0) {
      const place = this.#places[slot]!
      if (place < 0) fields.hide(name)
      else fields.add(name, this.#values, place, place + this.#lengths[slot]!)
    }
  }

  #nameAt(index: number, names: HpackNames): number {
    if (index < staticTable.length) return names.ofStatic[index]!
    const slot = this.#slotOf(index)
    return slot < 0 ? unknownName : this.#names[slot]!
  }

  /** Slot of an index; -1: unknown. */
  #slotOf(index: number): number {
    const back = index - staticTable.length
    if (back >= this.#count) return -1
    return (this.#first + this.#count - 1 - back) % this.#names.length
  }

  /** Adds an entry. `length` is at most the size of name and value; `to` is -1 if the value is not kept. */
  #insert(name: number, length: number, source: Buffer, from: number, to: number): void {
    const size = length + entryOverhead
    this.#evict(size)
    if (size > this.#most) return
    if (this.#count === this.#names.length) this.#widen()
    const place = to < 0 || to - from > maxValueBytes ? -1 : this.#room(to - from)
    if (place >= 0) source.copy(this.#values, place, from, to)
    const slot = (this.#first + this.#count) % this.#names.length
    this.#names[slot] = name
    this.#places[slot] = place
    this.#lengths[slot] = Math.max(0, to - from)
    this.#sizes[slot] = size
    this.#size += size
    this.#count++
  }

  #evict(room: number): void {
    while (this.#count > 0 && this.#size + room > this.#most) {
      this.#size -= this.#sizes[this.#first]!
      this.#first = (this.#first + 1) % this.#names.length
      this.#count--
    }
    if (this.#count === 0) this.#valuesEnd = 0
  }

  /** Offset at which `length` bytes of a value may be stored. */
  #room(length: number): number {
    if (this.#valuesEnd + length > this.#values.length) this.#compact(length)
    const place = this.#valuesEnd
    this.#valuesEnd += length
    return place
  }

  /** Compacts the values in use, into a larger buffer if they would fill more than half of this one. */
  #compact(length: number): void {
    let used = length
    for (let i = 0; i < this.#count; i++) {
      const slot = (this.#first + i) % this.#names.length
      if (this.#places[slot]! >= 0) used += this.#lengths[slot]!
    }
    const old = this.#values
    if (used * 2 > old.length)
      this.#values = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(Math.max(512, used * 2))))
    let end = 0
    for (let i = 0; i < this.#count; i++) {
      const slot = (this.#first + i) % this.#names.length
      const place = this.#places[slot]!
      if (place < 0) continue
      old.copy(this.#values, end, place, place + this.#lengths[slot]!)
      this.#places[slot] = end
      end += this.#lengths[slot]!
    }
    this.#valuesEnd = end
  }

  #widen(): void {
    const length = Math.max(16, this.#names.length * 2)
    const names = new Uint8Array(length)
    const places = new Int32Array(length)
    const lengths = new Int32Array(length)
    const sizes = new Int32Array(length)
    for (let i = 0; i < this.#count; i++) {
      const slot = (this.#first + i) % this.#names.length
      names[i] = this.#names[slot]!
      places[i] = this.#places[slot]!
      lengths[i] = this.#lengths[slot]!
      sizes[i] = this.#sizes[slot]!
    }
    this.#names = names
    this.#places = places
    this.#lengths = lengths
    this.#sizes = sizes
    this.#first = 0
  }
}

/** RFC 9113, section 6.5.2. */
const defaultTableSize = 4_096
/** If the negotiated size is unknown. Keeping more than the peer does no harm, as it never refers to that. */
const joinedTableSize = 16_384
const maxTableSize = 65_536
/** Bytes of an entry besides its value. */
const slotBytes = 13
/** RFC 7541, section 4.1. */
const entryOverhead = 32
/** Of one value, and of all values of a block. */
const maxValueBytes = 8_192
const maxFieldBytes = 32_768

/** Marks an entry with an unknown name. */
const unknownName = 255
const comma = 0x2c

const nothing = Buffer.alloc(0)
const scratch = Buffer.allocUnsafeSlow(maxFieldBytes)

/** The current block and the last string: module state, reused because blocks are decoded one after the other. */
let at = 0
let stop = 0
let stringStart = 0
let stringEnd = 0
let stringCoded = false
/** Its minimum decoded length. */
let stringBytes = 0

/** Section 5.1; -1: truncated, or larger than any valid value. */
function readInteger(bytes: Buffer, prefixBits: number): number {
  const mask = (1 << prefixBits) - 1
  let value = bytes[at++]! & mask
  if (value < mask) return value
  for (let shift = 0; shift <= 21; shift += 7) {
    if (at >= stop) return -1
    const byte = bytes[at++]!
    value += (byte & 0x7f) << shift
    if ((byte & 0x80) === 0) return value
  }
  return -1
}

/** Section 5.2. False: truncated. */
function readString(bytes: Buffer): boolean {
  if (at >= stop) return false
  stringCoded = (bytes[at]! & 0x80) !== 0
  const length = readInteger(bytes, 7)
  if (length < 0 || length > stop - at) return false
  stringStart = at
  at += length
  stringEnd = at
  // No code has more than 30 bits.
  stringBytes = stringCoded ? Math.floor((length * 8) / 30) : length
  return true
}

/** The number of the name in the last string. */
function nameIn(bytes: Buffer, names: HpackNames): number {
  if (!stringCoded) return names.find(bytes, stringStart, stringEnd)
  if (stringEnd - stringStart > 64) return 0
  const end = decodeHuffman(bytes, stringStart, stringEnd, scratch, 0)
  return end < 0 ? 0 : names.find(scratch, 0, end)
}

/** Appendix A; index 0 is unused. */
const staticTable: readonly (readonly [name: string, value: string])[] = [
  ['', ''],
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ...[
    'accept-charset',
    'accept-encoding',
    'accept-language',
    'accept-ranges',
    'accept',
    'access-control-allow-origin',
    'age',
    'allow',
    'authorization',
    'cache-control',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-location',
    'content-range',
    'content-type',
    'cookie',
    'date',
    'etag',
    'expect',
    'expires',
    'from',
    'host',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'last-modified',
    'link',
    'location',
    'max-forwards',
    'proxy-authenticate',
    'proxy-authorization',
    'range',
    'referer',
    'refresh',
    'retry-after',
    'server',
    'set-cookie',
    'strict-transport-security',
    'transfer-encoding',
    'user-agent',
    'vary',
    'via',
    'www-authenticate',
  ].map(name => [name, name === 'accept-encoding' ? 'gzip, deflate' : ''] as const),
]
const staticValues: readonly Buffer[] = staticTable.map(([, value]) => Buffer.from(value, 'latin1'))
