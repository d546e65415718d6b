import type { Signal } from '../../../foundation/model/signal.ts'
import { BackwardWriter } from './backward-writer.ts'
import {
  type FieldSchema,
  type FieldType,
  type MessageSchema,
  maxValueDepth,
  messageSchema,
  recursiveMessage,
  requestMessages,
  wireTypes,
} from './schema-table.ts'

/**
 * Encodes a parsed OTLP JSON export request. Unknown fields are dropped, null is a missing field,
 * and 64-bit integers may also be numbers. Throws a RangeError with the field and the
 * expected value.
 */
export function jsonToRequest(signal: Signal, json: unknown): Uint8Array {
  const out = new BackwardWriter()
  writeMessage(out, messageSchema(requestMessages[signal]), json, new Place('', undefined), 0)
  return Uint8Array.from(out.written())
}

/** Position in the document, as a linked list, so that the path is only built for an error. */
class Place {
  readonly #step: string
  readonly #parent: Place | undefined

  constructor(step: string, parent: Place | undefined) {
    this.#step = step
    this.#parent = parent
  }

  fault(expected: string): RangeError {
    let path = this.#step
    for (let place = this.#parent; place; place = place.#parent)
      path = path.startsWith('[') || place.#step === '' ? `${place.#step}${path}` : `${place.#step}.${path}`
    return new RangeError(`${path === '' ? 'the document' : path}: expected ${expected}`)
  }
}

function writeMessage(
  out: BackwardWriter,
  message: MessageSchema,
  json: unknown,
  place: Place,
  depth: number,
): void {
  const inner = message.name === recursiveMessage ? depth + 1 : depth
  if (inner > maxValueDepth) throw place.fault(`values nested at most ${maxValueDepth} deep`)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw place.fault('an object')
  const given = json as Readonly<Record<string, unknown>>
  let chosen = ''
  for (const field of message.fields.toReversed()) {
    const value = Object.hasOwn(given, field.name) ? given[field.name] : null
    if (value === null) continue
    const here = new Place(field.name, place)
    if (field.oneOf && chosen !== '') throw place.fault(`${field.name} or ${chosen}, not both`)
    if (field.oneOf) chosen = field.name
    if (field.repeated) writeRepeated(out, field, value, here, inner)
    else writeField(out, field, value, here, inner)
  }
}

function writeRepeated(
  out: BackwardWriter,
  field: FieldSchema,
  value: unknown,
  place: Place,
  depth: number,
): void {
  if (!Array.isArray(value)) throw place.fault('an array')
  if (value.length === 0) return
  const packed = field.type in wireTypes
  const before = out.length
  for (let i = value.length - 1; i >= 0; i--) {
    const here = new Place(`[${i}]`, place)
    if (packed) writeNumber(out, field.type, value[i], here)
    else writeField(out, field, value[i], here, depth)
  }
  if (packed) out.header(field.number, before)
}

function writeField(
  out: BackwardWriter,
  field: FieldSchema,
  value: unknown,
  place: Place,
  depth: number,
): void {
  const wireType = wireTypes[field.type]
  if (wireType !== undefined) {
    writeNumber(out, field.type, value, place)
    out.key(field.number, wireType)
    return
  }
  const before = out.length
  if (field.type === 'message') writeMessage(out, messageSchema(field.message), value, place, depth)
  else if (field.type === 'string') out.text(textOf(value, place))
  else if (field.type === 'bytes') out.raw(base64Of(value, place))
  else out.raw(idOf(value, field.type === 'id8' ? 8 : 16, place))
  out.header(field.number, before)
}

function textOf(value: unknown, place: Place): string {
  if (typeof value !== 'string') throw place.fault('a string')
  return value
}

/** Both alphabets, with or without padding, as in the JSON mapping of Protocol Buffers. */
function base64Of(value: unknown, place: Place): Buffer {
  if (typeof value !== 'string' || !/^[\w+/-]*={0,2}$/.test(value)) throw place.fault('bytes in base64')
  return Buffer.from(value, 'base64')
}

function idOf(value: unknown, bytes: number, place: Place): Buffer {
  if (typeof value !== 'string' || (value !== '' && value.length !== bytes * 2) || /[^\da-f]/i.test(value))
    throw place.fault(`${bytes * 2} hexadecimal digits`)
  return Buffer.from(value, 'hex')
}

function writeNumber(out: BackwardWriter, type: FieldType, value: unknown, place: Place): void {
  if (type === 'double') out.double(doubleOf(value, place))
  else if (type === 'bool') out.varint(booleanOf(value, place) ? 1 : 0)
  else {
    if (type === 'enum' && typeof value === 'string')
      throw place.fault('the number of the enumeration, not its name')
    const { range, write } = integerTypes[type]!
    write(out, integerOf(value, range, place))
  }
}

interface Range {
  readonly min: bigint
  readonly max: bigint
  readonly words: string
}

const range32: Range = { min: -(2n ** 31n), max: 2n ** 31n - 1n, words: 'a 32-bit integer' }
const unsigned32: Range = { min: 0n, max: 2n ** 32n - 1n, words: 'an unsigned 32-bit integer' }
const range64: Range = { min: -(2n ** 63n), max: 2n ** 63n - 1n, words: 'a 64-bit integer' }
const unsigned64: Range = { min: 0n, max: 2n ** 64n - 1n, words: 'an unsigned 64-bit integer' }

interface IntegerType {
  readonly range: Range
  readonly write: (out: BackwardWriter, value: bigint) => void
}

const asVarint: IntegerType['write'] = (out, value) => out.varint64(value)
/** Zigzag (encoding.md, "Signed Integers"). */
const asZigzag: IntegerType['write'] = (out, value) =>
  out.varint64(value < 0n ? -2n * value - 1n : 2n * value)
const asFixed32: IntegerType['write'] = (out, value) => out.fixed32(Number(value))
const asFixed64: IntegerType['write'] = (out, value) => out.fixed64(value)

const integerTypes: Readonly<Partial<Record<FieldType, IntegerType>>> = {
  enum: { range: range32, write: asVarint },
  int32: { range: range32, write: asVarint },
  sint32: { range: range32, write: asZigzag },
  uint32: { range: unsigned32, write: asVarint },
  fixed32: { range: unsigned32, write: asFixed32 },
  int64: { range: range64, write: asVarint },
  uint64: { range: unsigned64, write: asVarint },
  sfixed64: { range: range64, write: asFixed64 },
  fixed64: { range: unsigned64, write: asFixed64 },
}

function integerOf(value: unknown, range: Range, place: Place): bigint {
  let integer: bigint | undefined
  if (typeof value === 'number' && Number.isInteger(value)) integer = BigInt(value)
  // 64-bit numbers have at most this many digits, and BigInt takes more than linear time for longer ones.
  else if (typeof value === 'string' && value.length <= 20 && /^-?\d+$/.test(value)) integer = BigInt(value)
  if (integer === undefined || integer < range.min || integer > range.max) throw place.fault(range.words)
  return integer
}

function booleanOf(value: unknown, place: Place): boolean {
  if (typeof value !== 'boolean') throw place.fault('true or false')
  return value
}

function doubleOf(value: unknown, place: Place): number {
  if (typeof value === 'number') return value
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value)
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN
  if (Number.isNaN(number)) throw place.fault('a number, "NaN", "Infinity" or "-Infinity"')
  return number
}
