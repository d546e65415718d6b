import { Attributes } from '../../../foundation/model/attributes.ts'
import { LogRecord } from '../../../foundation/model/log.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import type { Profile } from '../../../foundation/model/profile.ts'
import { type Resource, resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { Span, SpanKind, StatusCode } from '../../../foundation/model/span.ts'
import { decodeMetric } from './decode-metric.ts'
import { ProfileDecoder } from './decode-profile.ts'
import { AttributeReader, bodyText, readValue, Unfit } from './decode-value.ts'
import { bufferOf, FieldCursor } from './field-cursor.ts'
import { messageSchema, requestMessages } from './schema-table.ts'

/** Of a span (trace.proto). */
const nameField = 5

/** Model type of the items of each signal. */
export interface DecodedItem {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/**
 * Decodes an export request of any sender into items of the model, in order. Returns what the model cannot represent.
 * The visitor may keep each item; resource and scope are shared by neighbouring items. Throws a RangeError if the bytes
 * are not a request. For tools, not for the hot path.
 */
export function decodeRequest<S extends Signal>(
  signal: S,
  body: Uint8Array,
  visit: (resource: Resource, scope: Scope, item: DecodedItem[S]) => void,
): Unfit {
  const unfit = new Unfit()
  const buffer = bufferOf(body)
  const decode = decoders[signal](buffer, unfit)
  // The first field of these messages is the resource or the scope, the second one its content.
  const request = messageSchema(requestMessages[signal])
  const ofResource = messageSchema(request.fields[0]!.message)
  const ofScope = messageSchema(ofResource.fields[1]!.message)

  const resources = new FieldCursor(buffer)
  for (let field = resources.nextOf(request); field; field = resources.nextOf(request)) {
    if (field.index !== 0) continue
    const from = readResource(resources.message(), unfit)
    const scopes = resources.message()
    for (let field = scopes.nextOf(ofResource); field; field = scopes.nextOf(ofResource)) {
      if (field.index !== 1) continue
      const scope = readScope(scopes.message(), unfit)
      const items = scopes.message()
      for (let field = items.nextOf(ofScope); field; field = items.nextOf(ofScope))
        if (field.index === 1) decode(items.message(), item => visit(from, scope, item))
    }
  }
  return unfit
}

/** Decodes the items of one message: usually one, none if the model has no counterpart. */
type Decode<T> = (cursor: FieldCursor, visit: (item: T) => void) => void

const decoders: { readonly [S in Signal]: (request: Buffer, unfit: Unfit) => Decode<DecodedItem[S]> } = {
  traces: (_, unfit) => (cursor, visit) => visit(readSpan(cursor, unfit)),
  metrics: (_, unfit) => (cursor, visit) => decodeMetric(cursor, unfit, visit),
  logs: (_, unfit) => (cursor, visit) => visit(readLogRecord(cursor, unfit)),
  profiles: (request, unfit) => {
    const decoder = new ProfileDecoder(request, unfit)
    return (cursor, visit) => decoder.decode(cursor, visit)
  },
}

function readResource(group: FieldCursor, unfit: Unfit): Resource {
  const made = resource({})
  const attributes = new AttributeReader(made.attributes, unfit)
  // Every signal has the resource in the same field.
  const outer = messageSchema('ResourceSpans')
  const message = messageSchema('Resource')
  for (let field = group.nextOf(outer); field; field = group.nextOf(outer)) {
    if (field.name !== 'resource') continue
    const cursor = group.message()
    for (let inner = cursor.nextOf(message); inner; inner = cursor.nextOf(message)) {
      if (inner.name === 'attributes') attributes.add(cursor)
      else if (inner.name === 'entityRefs') unfit.change('entity references of resources, lost')
    }
  }
  return made
}

function readScope(group: FieldCursor, unfit: Unfit): Scope {
  const scope: { -readonly [Key in keyof Scope]: Scope[Key] } = { name: '', version: '' }
  const attributes = new Attributes()
  const reader = new AttributeReader(attributes, unfit)
  const outer = messageSchema('ScopeSpans')
  const message = messageSchema('InstrumentationScope')
  for (let field = group.nextOf(outer); field; field = group.nextOf(outer)) {
    if (field.name === 'schemaUrl') {
      const url = group.text()
      if (url !== schemaUrl) scope.schemaUrl = url
    }
    if (field.name !== 'scope') continue
    const cursor = group.message()
    for (let inner = cursor.nextOf(message); inner; inner = cursor.nextOf(message)) {
      if (inner.name === 'name') scope.name = cursor.text()
      else if (inner.name === 'version') scope.version = cursor.text()
      else if (inner.name === 'attributes') reader.add(cursor)
    }
  }
  if (attributes.size > 0) scope.attributes = attributes
  return scope
}

function readSpan(cursor: FieldCursor, unfit: Unfit): Span {
  const span = new Span()
  const attributes = new AttributeReader(span.attributes, unfit)
  const message = messageSchema('Span')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'traceId':
        readId(cursor, span.traceId)
        break
      case 'spanId':
        readId(cursor, span.spanId)
        break
      case 'parentSpanId':
        readId(cursor, span.parentSpanId)
        break
      case 'traceState':
        span.traceState = cursor.text()
        break
      case 'flags':
        span.flags = cursor.number().uint32
        break
      case 'name':
        span.name = cursor.text()
        break
      case 'kind':
        span.kind = kindOf(cursor.number().int32)
        break
      case 'startTimeUnixNano':
        span.startUs = cursor.number().nanosAsMicros
        break
      case 'endTimeUnixNano':
        span.endUs = cursor.number().nanosAsMicros
        break
      case 'attributes':
        attributes.add(cursor)
        break
      case 'status':
        readStatus(cursor.message(), span, unfit)
        break
      case 'events':
        unfit.change('span events, lost')
        break
      case 'links':
        unfit.change('span links, lost')
        break
      default:
        noteDropped(cursor, unfit)
    }
  }
  return span
}

/** The name in the content of a Span message, which its encoder writes before the attributes. */
export function spanName(bytes: Buffer, start: number, end: number): string {
  const cursor = new FieldCursor(bytes, start, end)
  while (cursor.next()) if (cursor.field === nameField) return cursor.text()
  return ''
}

/** Reads the content of a Span message. Throws a RangeError where it is none. */
export function decodeSpan(bytes: Buffer, start: number, end: number): Span {
  return readSpan(new FieldCursor(bytes, start, end), new Unfit())
}

/** A missing or unknown kind counts as internal (trace.proto, SPAN_KIND_UNSPECIFIED). */
function kindOf(number: number): SpanKind {
  return Object.values(SpanKind).find(kind => kind === number) ?? SpanKind.internal
}

function readStatus(cursor: FieldCursor, span: Span, unfit: Unfit): void {
  const message = messageSchema('Status')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'message') span.statusMessage = cursor.text()
    else if (cursor.number().int32 === StatusCode.error) span.status = StatusCode.error
    else if (cursor.int32 !== StatusCode.unset) unfit.change('status Ok, converted to unset')
  }
}

function readLogRecord(cursor: FieldCursor, unfit: Unfit): LogRecord {
  const record = new LogRecord()
  const attributes = new AttributeReader(record.attributes, unfit)
  const message = messageSchema('LogRecord')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'timeUnixNano':
        record.timeUs = cursor.number().nanosAsMicros
        break
      case 'observedTimeUnixNano':
        record.observedUs = cursor.number().nanosAsMicros
        break
      case 'severityNumber':
        record.severity = cursor.number().int32
        break
      case 'severityText':
        record.severityText = cursor.text()
        break
      case 'body':
        record.body = bodyText(readValue(cursor.message()), unfit)
        break
      case 'attributes':
        attributes.add(cursor)
        break
      case 'flags':
        record.flags = cursor.number().uint32
        break
      case 'traceId':
        readId(cursor, record.traceId)
        break
      case 'spanId':
        readId(cursor, record.spanId)
        break
      case 'eventName':
        record.eventName = cursor.text()
        break
      default:
        noteDropped(cursor, unfit)
    }
  }
  return record
}

/** The fields `dropped_*_count`. */
function noteDropped(cursor: FieldCursor, unfit: Unfit): void {
  if (cursor.number().uint32 > 0) unfit.change('counts of data dropped by the sender, lost')
}

/** Reads an identifier; one of another length counts as missing, as in receivers. */
function readId(cursor: FieldCursor, into: Uint8Array): void {
  const bytes = cursor.bytes()
  if (bytes.length === into.length) into.set(bytes)
}
