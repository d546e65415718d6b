import type { AttributeValue } from '../../foundation/model/attributes.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import { type JsonFieldTaker, JsonLine } from './json-line.ts'
import { namedSeverity, steppedSeverity, syslogNames, syslogSeverity } from './severity.ts'
import { fieldUs } from './timestamp.ts'
import { isSpanId, isTraceId, isTraceparent, setSpanId, setTraceId, setTraceparent } from './trace-context.ts'

/** Maximum attributes from fields of one line; more are counted as dropped. */
const mostFields = 64
const longestKey = 256
/** Maximum length of an attribute, in UTF-16 units; longer values are cut. */
const longestValue = 32 * 1024

/** Roles of a field in the record. */
type Role =
  | 'body'
  | 'severity'
  | 'number'
  | 'syslog'
  | 'time'
  | 'traceId'
  | 'spanId'
  | 'flags'
  | 'traceparent'

/** Field names of common loggers by role; of several in one line the first name in this list wins. */
const names: Readonly<Record<Role, string>> = {
  body: 'message Message msg log text body short_message @m event',
  severity:
    'level severity lvl log.level Level LEVEL loglevel logLevel LogLevel levelname severity_text severityText ' +
    'SeverityText severityLevel Severity SEVERITY @l',
  number: 'severity_number severityNumber SeverityNumber',
  syslog: 'priority PRIORITY syslog.severity syslog_severity log.syslog.severity.code',
  time: '@timestamp timestamp time ts Timestamp Time @t datetime eventTime asctime',
  traceId: 'trace_id traceId trace.id traceID TraceId traceid TraceID dd.trace_id otelTraceID',
  spanId: 'span_id spanId span.id spanID SpanId spanid SpanID dd.span_id otelSpanID',
  flags: 'trace_flags traceFlags TraceFlags trace.flags',
  traceparent: 'traceparent',
}

const roles = Object.keys(names) as Role[]

/** Role of a name, and its rank among the names of the role. */
const meanings = new Map(
  roles.flatMap(role => names[role].split(' ').map((name, rank) => [name, { role, rank }] as const)),
)

/** A field chosen for a part of the record. */
class Chosen {
  key = ''
  value: AttributeValue = ''
  /** The lowest rank wins; infinite for none. */
  rank = Number.POSITIVE_INFINITY

  get isSet(): boolean {
    return this.rank !== Number.POSITIVE_INFINITY
  }

  clear(): void {
    this.value = ''
    this.rank = Number.POSITIVE_INFINITY
  }
}

export interface FieldOptions {
  readonly severity: boolean
  readonly traceContext: boolean
}

/**
 * Fills records from JSON objects: message, level, time and IDs become parts of the record, the other fields
 * attributes. A service name is an ordinary field: the process determines the resource of the record. Reused.
 */
export class JsonFields implements JsonFieldTaker {
  readonly #options: FieldOptions
  readonly #line = new JsonLine()
  readonly #chosen = Object.fromEntries(roles.map(role => [role, new Chosen()])) as Record<Role, Chosen>
  readonly #all = Object.values(this.#chosen)
  #record!: LogRecord
  /** Number of attributes that the record had before. */
  #given = 0

  constructor(options: FieldOptions) {
    this.#options = options
  }

  /**
   * False, and the record unchanged, if the text is not an object. The body is the text if no field is a message. A
   * time that the record already has is kept.
   */
  fill(record: LogRecord, text: string): boolean {
    this.#record = record
    this.#given = record.attributes.size
    const isRead = this.#line.read(text, this)
    if (isRead) this.#apply(record, text)
    else {
      record.attributes.size = this.#given
      record.droppedAttributes = 0
    }
    for (const chosen of this.#all) chosen.clear()
    return isRead
  }

  field(key: string, value: AttributeValue): void {
    const meaning = meanings.get(key)
    const chosen = meaning === undefined ? undefined : this.#chosen[meaning.role]
    if (chosen === undefined || meaning!.rank >= chosen.rank || !this.#takes(meaning!.role, value)) {
      this.#keep(key, value)
      return
    }
    this.#release(chosen)
    chosen.key = key
    chosen.value = value
    chosen.rank = meaning!.rank
  }

  /** Whether a value is valid for its role, and the role is wanted. */
  #takes(role: Role, value: AttributeValue): boolean {
    const { severity, traceContext } = this.#options
    switch (role) {
      case 'body':
        return typeof value === 'string'
      case 'severity':
        return severity && levelSeverity(value) > 0
      case 'number':
        return severity && Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 24
      case 'syslog':
        return severity && syslogSeverity(numberOf(value)) > 0
      case 'time':
        return this.#record.timeUs === 0 && fieldUs(value) > 0
      case 'traceId':
        return traceContext && typeof value === 'string' && isTraceId(value)
      case 'spanId':
        return traceContext && typeof value === 'string' && isSpanId(value)
      case 'flags':
        return traceContext && flagsOf(value) >= 0
      case 'traceparent':
        return traceContext && typeof value === 'string' && isTraceparent(value)
    }
  }

  #apply(record: LogRecord, text: string): void {
    const { body, time } = this.#chosen
    record.body = body.isSet ? (body.value as string) : text
    if (time.isSet) record.timeUs = fieldUs(time.value)
    this.#applySeverity(record)
    this.#applyTrace(record)
  }

  #applySeverity(record: LogRecord): void {
    const { severity, number, syslog } = this.#chosen
    if (severity.isSet) {
      record.severity = levelSeverity(severity.value)
      record.severityText = String(severity.value)
      this.#release(syslog)
    } else if (syslog.isSet) {
      const level = numberOf(syslog.value)
      record.severity = syslogSeverity(level)
      record.severityText = syslogNames[level]!
    } else if (number.isSet) record.severityText = ''
    if (number.isSet) record.severity = number.value as number
  }

  #applyTrace(record: LogRecord): void {
    const { traceId, spanId, flags, traceparent } = this.#chosen
    if (!traceId.isSet) {
      if (traceparent.isSet) setTraceparent(record, traceparent.value as string)
      // A span ID is useless without a trace ID.
      this.#release(spanId)
      this.#release(flags)
      return
    }
    setTraceId(record, traceId.value as string)
    if (spanId.isSet) setSpanId(record, spanId.value as string)
    if (flags.isSet) record.flags = flagsOf(flags.value)
    this.#release(traceparent)
  }

  /** Makes an attribute of a field that is no longer chosen. */
  #release(chosen: Chosen): void {
    if (chosen.isSet) this.#keep(chosen.key, chosen.value)
    chosen.clear()
  }

  /** Makes an attribute of a field. A line cannot change attributes that the record had before. */
  #keep(key: string, value: AttributeValue): void {
    const record = this.#record
    const { attributes } = record
    let at = 0
    while (at < attributes.size && attributes.keys[at] !== key) at++
    if (at < this.#given || key === '' || key.length > longestKey) record.droppedAttributes++
    else if (at < attributes.size) attributes.values[at] = bounded(value)
    else if (at - this.#given < mostFields) attributes.add(key, bounded(value))
    else record.droppedAttributes++
  }
}

function bounded(value: AttributeValue): AttributeValue {
  if (typeof value === 'string') return cut(value, longestValue)
  if (typeof value !== 'object') return value
  let left = longestValue
  return value.map(each => {
    const kept = cut(each, left)
    left -= kept.length
    return kept
  })
}

/** Cuts a text without leaving half a surrogate pair at its end. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most)
}

/** Severity of a level by name, or in steps of ten. */
function levelSeverity(value: AttributeValue): number {
  if (typeof value === 'number') return steppedSeverity(value)
  if (typeof value !== 'string') return 0
  return namedSeverity(value) || (value.length === 2 ? steppedSeverity(Number(value)) : 0)
}

function numberOf(value: AttributeValue): number {
  return typeof value === 'string' && value.length === 1 ? Number.parseInt(value, 10) : Number(value)
}

/** Flags of W3C Trace Context, as a number or in two hexadecimal digits; -1 if invalid. */
function flagsOf(value: AttributeValue): number {
  if (typeof value === 'string') return /^[0-9a-fA-F]{2}$/.test(value) ? Number.parseInt(value, 16) & 3 : -1
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 256
    ? (value as number) & 3
    : -1
}
