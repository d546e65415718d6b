// OTLP in JSON (opentelemetry-proto 1.11, "JSON Protobuf Encoding"): identifiers in hexadecimal, enumerations as
// numbers, 64-bit integers as strings, other bytes in base64, names in lower camel case.

import type { Signal } from '../../../foundation/model/signal.ts'
import { bufferOf, FieldCursor } from './field-cursor.ts'
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
 * Export request of any sender as OTLP JSON, in one line. All fields on the wire are included, zero values too; unknown
 * fields are dropped, and the last value of a singular field counts. Takes linear time. Throws a RangeError
 * if the bytes are not a request, or values are nested deeper than 32.
 */
export function requestToJson(signal: Signal, body: Uint8Array): string {
  return messageText(new FieldCursor(bufferOf(body)), messageSchema(requestMessages[signal]), 0)
}

function messageText(cursor: FieldCursor, message: MessageSchema, depth: number): string {
  const inner = message.name === recursiveMessage ? depth + 1 : depth
  if (inner > maxValueDepth)
    throw new RangeError(`cannot read OTLP request: values nested deeper than ${maxValueDepth}`)
  const texts: string[] = []
  let oneOf = -1
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.oneOf) {
      if (oneOf >= 0) texts[oneOf] = ''
      oneOf = field.index
    }
    if (!field.repeated) texts[field.index] = fieldText(cursor, field, inner)
    else if (field.type in wireTypes) texts[field.index] = numberTexts(cursor, field, texts[field.index])
    else texts[field.index] = joined(texts[field.index], fieldText(cursor, field, inner))
  }
  let out = ''
  for (const { index, name, repeated } of message.fields) {
    const text = texts[index]
    if (text) out = joined(out, repeated ? `"${name}":[${text}]` : `"${name}":${text}`)
  }
  return `{${out}}`
}

function joined(before: string | undefined, text: string): string {
  return before ? `${before},${text}` : text
}

function numberTexts(cursor: FieldCursor, field: FieldSchema, before = ''): string {
  let texts = before
  cursor.numbers(field, () => {
    texts = joined(texts, numberText(cursor, field.type))
  })
  return texts
}

function fieldText(cursor: FieldCursor, field: FieldSchema, depth: number): string {
  switch (field.type) {
    case 'message':
      return messageText(cursor.message(), messageSchema(field.message), depth)
    case 'string':
      return JSON.stringify(cursor.text())
    case 'bytes':
      return `"${cursor.bytes().toString('base64')}"`
    // OTLP does not define profile identifiers in JSON; the collector writes them like the others.
    case 'id8':
    case 'id16':
      return `"${cursor.bytes().toString('hex')}"`
    default:
      return numberText(cursor.number(), field.type)
  }
}

function numberText(cursor: FieldCursor, type: FieldType): string {
  switch (type) {
    case 'bool':
      return cursor.bool ? 'true' : 'false'
    case 'uint32':
    case 'fixed32':
      return String(cursor.uint32)
    case 'sint32':
      return String(cursor.sint32)
    case 'int64':
    case 'sfixed64':
      return `"${cursor.int64Text}"`
    case 'uint64':
    case 'fixed64':
      return `"${cursor.uint64Text}"`
    case 'double':
      return doubleText(cursor.double)
    default:
      return String(cursor.int32)
  }
}

function doubleText(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`
  return Object.is(value, -0) ? '-0' : String(value)
}
