import { fieldKey, WireType, Writer } from '../../lib/protobuf.ts'
import type { AttributeValue } from '../../model/attributes.ts'
import type { Frame } from '../../model/profile.ts'
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

const locationLines = fieldKey(3, WireType.bytes)
const lineFunction = fieldKey(1, WireType.varint)
const lineNumber = fieldKey(2, WireType.varint)
const functionName = fieldKey(1, WireType.varint)
const functionFile = fieldKey(3, WireType.varint)
const linkTraceId = fieldKey(1, WireType.bytes)
const linkSpanId = fieldKey(2, WireType.bytes)
const attributeKey = fieldKey(1, WireType.varint)
const attributeValue = fieldKey(2, WireType.bytes)
const stackLocations = fieldKey(1, WireType.bytes)

/** Two indices packed into one number that a double holds exactly: each table stays far below 2^26 entries. */
const two26 = 2 ** 26
/** A function's index and a line number in the same way: lines have 32 bits. */
const two32 = 2 ** 32

/** What a table's buffer may keep for the next request. */
const keepBytes = 512 * 1024

/**
 * What the profiles of one request share (ProfilesDictionary, OTLP 1.11): every distinct string, function, location,
 * stack and attribute once, encoded when it is first met. Element 0 of each table is its zero value.
 */
export class ProfileDictionary implements Dictionary {
  private readonly strings = new Table<string>(out => out.header(stringTable, 0))
  private readonly functions = new Table<number>(out => out.header(functionTable, 0))
  private readonly locations = new Table<number>(out => out.header(locationTable, 0))
  private readonly attributes = new Table<string>(out => out.header(attributeTable, 0))
  private readonly stacks = new Table<number>(out => out.header(stackTable, 0))
  /** Stacks as a tree whose edges are locations, so that a stack is found without a key of its whole length. */
  private readonly nodes = new Table<number>(() => {})
  private readonly tables: readonly Table<string | number>[] = [
    this.locations,
    this.functions,
    this.strings,
    this.attributes,
    this.stacks,
    this.nodes,
  ]

  get bytes(): number {
    let bytes = 6 + unusedTables.length
    for (const table of this.tables) bytes += table.out.length
    return bytes
  }

  mark(): void {
    for (const table of this.tables) table.mark()
  }

  undo(): void {
    for (const table of this.tables) table.undo()
  }

  clear(): void {
    for (const table of this.tables) table.clear()
  }

  write(out: Writer): void {
    let size = unusedTables.length
    for (const table of this.tables) size += table.out.length
    out.header(dictionaryField, size)
    for (const table of this.tables) out.raw(table.out.written())
    out.raw(unusedTables)
  }

  string(text: string): number {
    if (text === '') return 0
    const known = this.strings.find(text)
    if (known >= 0) return known
    this.strings.out.string(stringTable, text)
    return this.strings.add(text)
  }

  /** The index of a stack, leaf first as its frames are; 0 for an empty one. */
  stack(frames: readonly Frame[]): number {
    if (frames.length === 0) return 0
    let node = 0
    for (let i = 0; i < frames.length; i++) {
      const edge = node * two26 + this.location(frames[i]!)
      const known = this.nodes.find(edge)
      node = known >= 0 ? known : this.nodes.add(edge)
    }
    const known = this.stacks.find(node)
    if (known >= 0) return known
    const { out } = this.stacks
    out.open(stackTable, frames.length * 2 + 2)
    out.open(stackLocations, frames.length * 2)
    for (let i = 0; i < frames.length; i++) out.element(this.location(frames[i]!))
    out.close()
    out.close()
    return this.stacks.add(node)
  }

  attribute(key: string, value: AttributeValue): number {
    const index = this.string(key)
    const identity = `${index} ${typeof value} ${typeof value === 'object' ? JSON.stringify(value) : value}`
    const known = this.attributes.find(identity)
    if (known >= 0) return known
    const { out } = this.attributes
    out.open(attributeTable, 32)
    if (index !== 0) out.int(attributeKey, index)
    encodeValue(out, attributeValue, value)
    out.close()
    return this.attributes.add(identity)
  }

  private location(frame: Frame): number {
    const index = this.function(frame)
    const identity = index * two32 + (frame.line >>> 0)
    if (identity === 0) return 0
    const known = this.locations.find(identity)
    if (known >= 0) return known
    const { out } = this.locations
    out.open(locationTable, 16)
    out.open(locationLines, 16)
    if (index !== 0) out.int(lineFunction, index)
    if (frame.line !== 0) out.int(lineNumber, frame.line)
    out.close()
    out.close()
    return this.locations.add(identity)
  }

  private function(frame: Frame): number {
    const name = this.string(frame.name)
    const file = this.string(frame.file)
    const identity = name * two26 + file
    if (identity === 0) return 0
    const known = this.functions.find(identity)
    if (known >= 0) return known
    const { out } = this.functions
    out.open(functionTable, 16)
    if (name !== 0) out.int(functionName, name)
    if (file !== 0) out.int(functionFile, file)
    out.close()
    return this.functions.add(identity)
  }
}

/** The entries of one table, encoded, and the index of each by what identifies it. Entry 0 has no identity. */
class Table<K extends string | number> {
  readonly out = new Writer(256)
  private readonly indices = new Map<K, number>()
  private readonly writeZero: (out: Writer) => void
  private markedLength = 0
  private markedSize = 0

  constructor(writeZero: (out: Writer) => void) {
    this.writeZero = writeZero
    writeZero(this.out)
  }

  /** The index of an entry, -1 when it is new. */
  find(identity: K): number {
    return this.indices.get(identity) ?? -1
  }

  /** Gives an index to the entry that was just written. */
  add(identity: K): number {
    const index = this.indices.size + 1
    this.indices.set(identity, index)
    return index
  }

  mark(): void {
    this.markedLength = this.out.length
    this.markedSize = this.indices.size
  }

  undo(): void {
    this.out.truncate(this.markedLength)
    for (const [identity, index] of this.indices) if (index > this.markedSize) this.indices.delete(identity)
  }

  clear(): void {
    this.indices.clear()
    this.out.clear(keepBytes)
    this.writeZero(this.out)
  }
}

/** Mappings and links, of which there are none beside the zero values; a link's has its ids in full, as the proto asks. */
const unusedTables: Uint8Array = encodeUnusedTables()

function encodeUnusedTables(): Uint8Array {
  const out = new Writer(64)
  out.header(mappingTable, 0)
  out.open(linkTable, 28)
  out.bytes(linkTraceId, new Uint8Array(16))
  out.bytes(linkSpanId, new Uint8Array(8))
  out.close()
  return Uint8Array.from(out.written())
}
