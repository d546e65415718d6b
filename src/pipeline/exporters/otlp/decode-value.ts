import type { Attributes, AttributeValue } from '../../../foundation/model/attributes.ts'
import type { FieldCursor } from './field-cursor.ts'
import { maxValueDepth, messageSchema, recursiveMessage } from './schema-table.ts'

/** Counts data without a counterpart in the model, by description. */
export class Unfit {
  /** Data converted, or lost from an item that was kept. */
  readonly changed = new Map<string, number>()
  /** Dropped items, as receivers count them. */
  readonly leftOut = new Map<string, number>()

  change(what: string, count = 1): void {
    this.changed.set(what, (this.changed.get(what) ?? 0) + count)
  }

  leaveOut(what: string, items = 1): void {
    this.leftOut.set(what, (this.leftOut.get(what) ?? 0) + items)
  }
}

/** Reads attributes. The last value of a duplicate key counts. */
export class AttributeReader {
  readonly #places = new Map<string, number>()
  readonly #attributes: Attributes
  readonly #unfit: Unfit

  constructor(attributes: Attributes, unfit: Unfit) {
    this.#attributes = attributes
    this.#unfit = unfit
  }

  /** Adds the KeyValue that the cursor is at. */
  add(cursor: FieldCursor): void {
    const attributes = this.#attributes
    const places = this.#places
    const { key, value } = readKeyValue(cursor.message(), 0)
    const taken = attributeValue(value, this.#unfit)
    const place = places.get(key)
    if (place !== undefined) attributes.values[place] = taken
    else {
      places.set(key, attributes.size)
      attributes.add(key, taken)
    }
  }
}

/** AnyValue as plain data: a Buffer for bytes, a bigint for integers that a double cannot represent. */
export type PlainValue =
  | string
  | number
  | boolean
  | bigint
  | null
  | Buffer
  | readonly PlainValue[]
  | ReadonlyMap<string, PlainValue>

/** Reads an AnyValue. Throws a RangeError for values nested deeper than 32. */
export function readValue(cursor: FieldCursor, depth = 0): PlainValue {
  if (depth >= maxValueDepth)
    throw new RangeError(`cannot read OTLP request: values nested deeper than ${maxValueDepth}`)
  const message = messageSchema(recursiveMessage)
  let value: PlainValue = null
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'stringValue':
        value = cursor.text()
        break
      case 'boolValue':
        value = cursor.number().bool
        break
      case 'intValue':
        value = integer(cursor.number())
        break
      case 'doubleValue':
        value = cursor.number().double
        break
      case 'bytesValue':
        value = cursor.bytes()
        break
      case 'arrayValue':
        value = readArray(cursor.message(), depth)
        break
      case 'kvlistValue':
        value = readMap(cursor.message(), depth)
        break
      default:
        value = null
    }
  }
  return value
}

/** Integer read by the cursor, as a number if exact. */
function integer(cursor: FieldCursor): number | bigint {
  const { int64 } = cursor
  if (Number.isSafeInteger(int64)) return int64
  const exact = BigInt(cursor.int64Text)
  return BigInt(int64) === exact ? int64 : exact
}

/** Integer read by the cursor, rounded to a double. */
export function readInteger(cursor: FieldCursor, unfit: Unfit): number {
  return rounded(integer(cursor), unfit)
}

function rounded(value: number | bigint, unfit: Unfit): number {
  if (typeof value === 'bigint') unfit.change('integers over 2^53, rounded')
  return Number(value)
}

function readArray(cursor: FieldCursor, depth: number): PlainValue[] {
  const message = messageSchema('ArrayValue')
  const values: PlainValue[] = []
  while (cursor.nextOf(message)) values.push(readValue(cursor.message(), depth + 1))
  return values
}

function readMap(cursor: FieldCursor, depth: number): Map<string, PlainValue> {
  const message = messageSchema('KeyValueList')
  const values = new Map<string, PlainValue>()
  while (cursor.nextOf(message)) {
    const { key, value } = readKeyValue(cursor.message(), depth + 1)
    values.set(key, value)
  }
  return values
}

function readKeyValue(cursor: FieldCursor, depth: number): { key: string; value: PlainValue } {
  const message = messageSchema('KeyValue')
  let key = ''
  let value: PlainValue = null
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'key') key = cursor.text()
    else if (field.name === 'value') value = readValue(cursor.message(), depth)
  }
  return { key, value }
}

/** Value in a form of the model: bytes in base64, maps and arrays of non-strings as JSON. */
export function attributeValue(value: PlainValue, unfit: Unfit): AttributeValue {
  if (value === null) return ''
  if (Array.isArray(value) && value.every(each => typeof each === 'string')) return value
  if (typeof value === 'bigint') return rounded(value, unfit)
  if (typeof value !== 'object') return value
  if (Buffer.isBuffer(value)) unfit.change('byte values, converted to base64')
  else unfit.change(`${Array.isArray(value) ? 'arrays of non-strings' : 'maps'} as values, converted to JSON`)
  return plainText(value)
}

/** Body of a log record, which is a string in the model. */
export function bodyText(value: PlainValue, unfit: Unfit): string {
  if (value === null) return ''
  if (typeof value === 'string') return value
  unfit.change('log bodies that are not strings, converted to JSON')
  return plainText(value)
}

/** A value as JSON; bytes are base64, without quotes at the top level. */
function plainText(value: PlainValue): string {
  return Buffer.isBuffer(value) ? value.toString('base64') : json(value)
}

function json(value: PlainValue): string {
  if (typeof value === 'bigint') return value.toString()
  if (Buffer.isBuffer(value)) return JSON.stringify(value.toString('base64'))
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`
  if (value instanceof Map)
    return `{${[...value].map(([key, each]) => `${JSON.stringify(key)}:${json(each)}`).join(',')}}`
  return JSON.stringify(value)
}
