import { crc32 } from 'node:zlib'
import { fieldKey, fitsInt64, varintSize, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Attributes, AttributeValue } from '../../../foundation/model/attributes.ts'
import { type Resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import { PreparedAttributes } from './prepared-attributes.ts'

const keyValueKey = fieldKey(1, WireType.bytes)
const keyValueValue = fieldKey(2, WireType.bytes)

const anyString = fieldKey(1, WireType.bytes)
const anyBool = fieldKey(2, WireType.varint)
const anyInt = fieldKey(3, WireType.varint)
const anyDouble = fieldKey(4, WireType.fixed64)
const anyArray = fieldKey(5, WireType.bytes)
const arrayValues = fieldKey(1, WireType.bytes)

/** Bytes of keys and lengths around a short key and a short text: an estimate that `Writer.open` corrects. */
const frame = 6
/** Maximum bytes of a number or boolean with its key; its length therefore always takes one byte. */
const scalar = 11

const prepared = small(new PreparedAttributes())

/** Writes attributes as a repeated KeyValue field (common.proto) with the given key. */
export function encodeAttributes(out: Writer, key: number, attributes: Attributes): void {
  const { keys, values, size } = attributes
  for (let i = 0; i < size; i++) {
    const name = keys[i]!
    const value = values[i]!
    const known = prepared.name(i, name)
    const field = known?.fieldOf(value)
    if (field === undefined) encodeAttribute(out, key, name, value, known)
    else {
      known!.hits++
      out.keyed(key, field)
    }
  }
}

function encodeAttribute(
  out: Writer,
  key: number,
  name: string,
  value: AttributeValue,
  known: ReturnType<PreparedAttributes['name']>,
): void {
  const start = out.length + varintSize(key)
  out.open(key, frame + name.length + (typeof value === 'string' ? value.length : scalar))
  if (known === undefined) out.string(keyValueKey, name)
  else out.prepared(known.field)
  encodeValue(out, keyValueValue, value)
  out.close()
  if (known === undefined) prepared.addName(name)
  else prepared.addValue(known, value, out, start)
}

/** Writes an AnyValue (common.proto). A whole number within 64 bits is an integer, any other a double. */
export function encodeValue(out: Writer, key: number, value: AttributeValue): void {
  if (typeof value === 'string') {
    out.embeddedString(key, anyString, value)
  } else if (typeof value === 'number') {
    if (fitsInt64(value)) {
      out.header(key, value < 0 ? scalar : 1 + varintSize(value))
      out.int(anyInt, value)
    } else {
      out.header(key, 9)
      out.double(anyDouble, value)
    }
  } else if (typeof value === 'boolean') {
    out.header(key, 2)
    out.bool(anyBool, value)
  } else {
    out.open(key, scalar)
    encodeArray(out, value)
    out.close()
  }
}

function encodeArray(out: Writer, texts: readonly string[]): void {
  out.open(anyArray, scalar)
  for (let i = 0; i < texts.length; i++) encodeValue(out, arrayValues, texts[i]!)
  out.close()
}

/** Writes a trace or span ID; an ID of zeros, which means none, is omitted. */
export function encodeId(out: Writer, key: number, id: Uint8Array): void {
  for (let i = 0; i < id.length; i++) {
    if (id[i] !== 0) {
      out.bytes(key, id)
      return
    }
  }
}

const resourceField = fieldKey(1, WireType.bytes)
const resourceAttributes = fieldKey(1, WireType.bytes)
const scopeField = fieldKey(1, WireType.bytes)
const scopeName = fieldKey(1, WireType.bytes)
const scopeVersion = fieldKey(2, WireType.bytes)
const scopeAttributes = fieldKey(3, WireType.bytes)
const schemaUrlField = fieldKey(3, WireType.bytes)

const resources = new WeakMap<Resource, Uint8Array>()
const scopes = new WeakMap<Scope, Uint8Array>()

/**
 * The `resource` field of ResourceSpans and its counterparts in the other signals, encoded once per resource. Empty for
 * a resource without attributes.
 */
export function resourceBytes(resource: Resource): Uint8Array {
  let bytes = resources.get(resource)
  if (bytes === undefined) {
    const out = new Writer(512)
    if (resource.attributes.size > 0) {
      out.open(resourceField, 256)
      encodeAttributes(out, resourceAttributes, resource.attributes)
      out.close()
    }
    bytes = Uint8Array.from(out.written())
    resources.set(resource, bytes)
  }
  return bytes
}

const orderKeyOf = new WeakMap<Resource, number>()

/** Order key of a resource, 0 to 31, by its content, so that it is the same after a restart. */
export function resourceOrderKey(resource: Resource): number {
  let orderKey = orderKeyOf.get(resource)
  if (orderKey === undefined) {
    orderKey = crc32(resourceBytes(resource)) & 31
    orderKeyOf.set(resource, orderKey)
  }
  return orderKey
}

/** The `scope` field of ScopeSpans and its counterparts, encoded once per scope. Empty for a scope without data. */
export function scopeBytes(scope: Scope): Uint8Array {
  let bytes = scopes.get(scope)
  if (bytes === undefined) {
    const out = new Writer(128)
    const { name, version, attributes } = scope
    const hasAttributes = attributes !== undefined && attributes.size > 0
    if (name !== '' || version !== '' || hasAttributes) {
      out.open(scopeField, 64)
      if (name !== '') out.string(scopeName, name)
      if (version !== '') out.string(scopeVersion, version)
      if (hasAttributes) encodeAttributes(out, scopeAttributes, attributes)
      out.close()
    }
    bytes = Uint8Array.from(out.written())
    scopes.set(scope, bytes)
  }
  return bytes
}

/** The `schema_url` field, which has the same number in resources and scopes. */
export const schemaUrlBytes: Uint8Array = encodeSchemaUrl(schemaUrl)

const scopeSchemaUrls = new WeakMap<Scope, Uint8Array>()

/** The `schema_url` field of a scope: its own, or the default. */
export function scopeSchemaUrlBytes(scope: Scope): Uint8Array {
  if (scope.schemaUrl === undefined) return schemaUrlBytes
  let bytes = scopeSchemaUrls.get(scope)
  if (bytes === undefined) {
    bytes = encodeSchemaUrl(scope.schemaUrl)
    scopeSchemaUrls.set(scope, bytes)
  }
  return bytes
}

function encodeSchemaUrl(url: string): Uint8Array {
  const out = new Writer(128)
  if (url !== '') out.string(schemaUrlField, url)
  return Uint8Array.from(out.written())
}
