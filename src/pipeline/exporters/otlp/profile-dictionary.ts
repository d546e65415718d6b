import { isZero } from '../../../foundation/lib/is-zero.ts'
import { fieldKey, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type { AttributeValue } from '../../../foundation/model/attributes.ts'
import type { Frame, Mapping, SpanLink } from '../../../foundation/model/profile.ts'
import { DictionaryTable } from './dictionary-table.ts'
import { encodeValue } from './encode-attributes.ts'
import type { Dictionary } from './request.ts'

const dictionaryField = fieldKey(2, WireType.bytes)

const mappingTable = fieldKey(1, WireType.bytes)
const locationTable = fieldKey(2, WireType.bytes)
const functionTable = fieldKey(3, WireType.bytes)
const linkTable = fieldKey(4, WireType.bytes)
const stringTable = fieldKey(5, WireType.bytes)
const attributeTable = fieldKey(6, WireType.bytes)
const stackTable = fieldKey(7, WireType.bytes)

const mappingStart = fieldKey(1, WireType.varint)
const mappingLimit = fieldKey(2, WireType.varint)
const mappingOffset = fieldKey(3, WireType.varint)
const mappingFile = fieldKey(4, WireType.varint)
const mappingAttributes = fieldKey(5, WireType.bytes)
const locationMapping = fieldKey(1, WireType.varint)
const locationAddress = fieldKey(2, WireType.varint)
const locationLines = fieldKey(3, WireType.bytes)
const locationAttributes = fieldKey(4, WireType.bytes)
const lineFunction = fieldKey(1, WireType.varint)
const lineNumber = fieldKey(2, WireType.varint)
const functionName = fieldKey(1, WireType.varint)
const functionSystemName = fieldKey(2, WireType.varint)
const functionFile = fieldKey(3, WireType.varint)
const linkTraceId = fieldKey(1, WireType.bytes)
const linkSpanId = fieldKey(2, WireType.bytes)
const attributeKey = fieldKey(1, WireType.varint)
const attributeValue = fieldKey(2, WireType.bytes)
const stackLocations = fieldKey(1, WireType.bytes)

/** Maximum number of remembered frame objects. */
const mostSeenFrames = 1 << 16

/** A 52-bit hash; a double has room to combine it further. */
const two20 = 2 ** 20

/** Attributes of the semantic conventions 1.44; every mapping must have one of the last two. */
export const frameType = 'profile.frame.type'
export const gnuBuildId = 'process.executable.build_id.gnu'
export const fileHash = 'process.executable.build_id.htlhash'

/**
 * Dictionary of the profiles of one request (ProfilesDictionary, OTLP 1.11): every distinct string, mapping, function,
 * location, stack, link and attribute once, encoded at its first use. Element 0 of each table is its zero value.
 * Frames, mappings and links are mostly objects seen before, so they are looked up by identity first, then by content.
 */
export class ProfileDictionary implements Dictionary {
  readonly #mappings = new DictionaryTable<string>(out => out.header(mappingTable, 0))
  readonly #locations = new DictionaryTable<string>(out => out.header(locationTable, 0))
  readonly #functions = new DictionaryTable<string>(out => out.header(functionTable, 0))
  /** The zero link has full-length identifiers, as profiles.proto requires for strict readers. */
  readonly #links = new DictionaryTable<string>(out => writeLink(out, new Uint8Array(16), new Uint8Array(8)))
  readonly #strings = new DictionaryTable<string>(out => out.header(stringTable, 0))
  readonly #attributes = new DictionaryTable<string>(out => out.header(attributeTable, 0))
  readonly #stacks = new DictionaryTable<number>(out => out.header(stackTable, 0))
  /** Offset of each stack in the table's bytes, from stack 1 on. */
  readonly #stackStarts: number[] = []
  readonly #tables: readonly DictionaryTable<string | number>[] = [
    this.#mappings,
    this.#locations,
    this.#functions,
    this.#links,
    this.#strings,
    this.#attributes,
    this.#stacks,
  ]
  readonly #seenFrames = new Map<Frame, number>()
  readonly #seenMappings = new Map<Mapping, number>()
  readonly #seenLinks = new Map<SpanLink, number>()
  readonly #seenValues = new Map<string, Map<AttributeValue, number>>()

  get bytes(): number {
    let bytes = 6
    for (const table of this.#tables) bytes += table.out.length
    return bytes
  }

  mark(): void {
    for (const table of this.#tables) table.mark()
  }

  undo(): void {
    for (const table of this.#tables) table.undo()
    this.#stackStarts.length = this.#stacks.size
    this.#forget()
  }

  clear(): void {
    for (const table of this.#tables) table.clear()
    this.#stackStarts.length = 0
    this.#forget()
  }

  write(out: Writer): void {
    let size = 0
    for (const table of this.#tables) size += table.out.length
    out.header(dictionaryField, size)
    for (const table of this.#tables) out.raw(table.out.written())
  }

  string(text: string): number {
    if (text === '') return 0
    const known = this.#strings.find(text)
    if (known >= 0) return known
    this.#strings.out.string(stringTable, text)
    return this.#strings.add(text)
  }

  /** Index of a stack, leaf first like its frames; 0 for an empty stack. */
  stack(frames: readonly Frame[]): number {
    const { length } = frames
    if (length === 0) return 0
    const { out } = this.#stacks
    const start = out.length
    let high = length
    let low = length
    out.open(stackTable, length * 2 + 2)
    out.open(stackLocations, length * 2)
    for (let i = 0; i < length; i++) {
      const location = this.#location(frames[i]!)
      out.element(location)
      high = Math.imul(high ^ location, 0x9e3779b1)
      low = Math.imul(low ^ (low >>> 15) ^ location, 0x85ebca6b)
    }
    out.close()
    out.close()
    return this.#stackWritten(start, (high >>> 0) * two20 + (low >>> 12))
  }

  /**
   * Index of the stack that was just written, which is removed again if it is a duplicate. Different stacks may have
   * the same hash.
   */
  #stackWritten(start: number, hash: number): number {
    const stacks = this.#stacks
    const stackStarts = this.#stackStarts
    for (let key = hash; ; key++) {
      const known = stacks.find(key)
      if (known < 0) {
        stackStarts.push(start)
        return stacks.add(key)
      }
      const from = stackStarts[known - 1]!
      const to = known < stackStarts.length ? stackStarts[known]! : start
      const bytes = stacks.out.written()
      if (bytes.compare(bytes, from, to, start) === 0) {
        stacks.out.truncate(start)
        return known
      }
    }
  }

  attribute(key: string, value: AttributeValue): number {
    if (typeof value === 'object') return this.#attributeEntry(key, value)
    let values = this.#seenValues.get(key)
    if (values === undefined) {
      values = new Map()
      this.#seenValues.set(key, values)
    }
    const seen = values.get(value)
    if (seen !== undefined) return seen
    const index = this.#attributeEntry(key, value)
    values.set(value, index)
    return index
  }

  /** Index of a link; 0 if its identifiers are invalid (W3C Trace Context: all zero, or of another length). */
  link(link: SpanLink): number {
    const seen = this.#seenLinks.get(link)
    if (seen !== undefined) return seen
    const index = this.#linkEntry(link)
    this.#seenLinks.set(link, index)
    return index
  }

  #forget(): void {
    this.#seenFrames.clear()
    this.#seenMappings.clear()
    this.#seenLinks.clear()
    this.#seenValues.clear()
  }

  #attributeEntry(key: string, value: AttributeValue): number {
    const index = this.string(key)
    const identity = `${index} ${typeof value} ${typeof value === 'object' ? JSON.stringify(value) : value}`
    const known = this.#attributes.find(identity)
    if (known >= 0) return known
    const { out } = this.#attributes
    out.open(attributeTable, 32)
    if (index !== 0) out.int(attributeKey, index)
    encodeValue(out, attributeValue, value)
    out.close()
    return this.#attributes.add(identity)
  }

  #linkEntry({ traceId, spanId }: SpanLink): number {
    if (traceId.length !== 16 || spanId.length !== 8 || isZero(traceId) || isZero(spanId)) return 0
    const identity = Buffer.concat([traceId, spanId]).toString('latin1')
    const known = this.#links.find(identity)
    if (known >= 0) return known
    writeLink(this.#links.out, traceId, spanId)
    return this.#links.add(identity)
  }

  #location(frame: Frame): number {
    const seen = this.#seenFrames.get(frame)
    if (seen !== undefined) return seen
    const index = this.#locationEntry(frame)
    if (this.#seenFrames.size >= mostSeenFrames) this.#seenFrames.clear()
    this.#seenFrames.set(frame, index)
    return index
  }

  /** An address is meaningless without its mapping, so both are written or neither. */
  #locationEntry(frame: Frame): number {
    const { type } = frame
    const code = this.#function(frame)
    const line = Math.max(frame.line, 0)
    const mapping = frame.mapping === undefined ? 0 : this.#mapping(frame.mapping)
    const address = mapping === 0 ? 0 : Math.max(frame.address ?? 0, 0)
    const kind = type === undefined ? 0 : this.attribute(frameType, type)
    if (code === 0 && line === 0 && mapping === 0 && kind === 0) return 0

    const identity = `${code} ${line} ${mapping} ${address} ${kind}`
    const known = this.#locations.find(identity)
    if (known >= 0) return known
    const { out } = this.#locations
    out.open(locationTable, 24)
    if (mapping !== 0) out.int(locationMapping, mapping)
    if (address !== 0) out.int(locationAddress, address)
    if (code !== 0 || line !== 0) {
      out.open(locationLines, 16)
      if (code !== 0) out.int(lineFunction, code)
      if (line !== 0) out.int(lineNumber, line)
      out.close()
    }
    if (kind !== 0) {
      out.open(locationAttributes, 1)
      out.element(kind)
      out.close()
    }
    out.close()
    return this.#locations.add(identity)
  }

  #function(frame: Frame): number {
    const name = this.string(frame.name)
    const file = this.string(frame.file)
    const systemName = frame.systemName === undefined ? 0 : this.string(frame.systemName)
    if (name === 0 && file === 0 && systemName === 0) return 0

    const identity = `${name} ${file} ${systemName}`
    const known = this.#functions.find(identity)
    if (known >= 0) return known
    const { out } = this.#functions
    out.open(functionTable, 16)
    if (name !== 0) out.int(functionName, name)
    if (systemName !== 0) out.int(functionSystemName, systemName)
    if (file !== 0) out.int(functionFile, file)
    out.close()
    return this.#functions.add(identity)
  }

  #mapping(mapping: Mapping): number {
    const seen = this.#seenMappings.get(mapping)
    if (seen !== undefined) return seen
    const index = this.#mappingEntry(mapping)
    this.#seenMappings.set(mapping, index)
    return index
  }

  /**
   * A file without an identifier is not a mapping: profiles.proto and the conventions require at least one attribute.
   */
  #mappingEntry({ path, buildId, hash, start, limit, offset }: Mapping): number {
    if (buildId === '' && hash === '') return 0
    const file = this.string(path)
    const gnu = buildId === '' ? 0 : this.attribute(gnuBuildId, buildId)
    const digest = hash === '' ? 0 : this.attribute(fileHash, hash)
    const bounded = start >= 0 && start < limit
    const fileOffset = Math.max(offset, 0)

    const identity = `${file} ${gnu} ${digest} ${bounded ? `${start} ${limit}` : ''} ${fileOffset}`
    const known = this.#mappings.find(identity)
    if (known >= 0) return known
    const { out } = this.#mappings
    out.open(mappingTable, 32)
    if (bounded && start !== 0) out.int(mappingStart, start)
    if (bounded) out.int(mappingLimit, limit)
    if (fileOffset !== 0) out.int(mappingOffset, fileOffset)
    if (file !== 0) out.int(mappingFile, file)
    out.open(mappingAttributes, 4)
    if (gnu !== 0) out.element(gnu)
    if (digest !== 0) out.element(digest)
    out.close()
    out.close()
    return this.#mappings.add(identity)
  }
}

function writeLink(out: Writer, traceId: Uint8Array, spanId: Uint8Array): void {
  out.open(linkTable, 28)
  out.bytes(linkTraceId, traceId)
  out.bytes(linkSpanId, spanId)
  out.close()
}
