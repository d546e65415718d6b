import { isZero } from '../../foundation/lib/is-zero.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import { withoutControlSequences } from './control-sequences.ts'
import { JsonFields } from './json-fields.ts'
import { TextSeverity } from './severity.ts'
import { findTraceContext } from './trace-context.ts'

/** Parts to read from a text. */
export interface ParseOptions {
  readonly json: boolean
  readonly severity: boolean
  readonly traceContext: boolean
}

/** Maximum length of a text parsed as JSON, in UTF-16 units. */
const longestJson = 64 * 1024

/**
 * Makes a record from a text: body, severity, trace context, and attributes if it is a JSON object. The body is
 * without terminal colours. Reused; never throws.
 */
export class RecordParser {
  readonly #options: ParseOptions
  readonly #fields: JsonFields
  readonly #level = new TextSeverity()

  constructor(options: ParseOptions) {
    this.#options = options
    this.#fields = new JsonFields(options)
  }

  /**
   * Fills a record after `clearRecord`; attributes and a time set since then are kept. A severity that
   * was set is overridden by one in a field, and by one in the text only with `textWins`.
   */
  fill(record: LogRecord, text: string, textWins = true): void {
    const { json, severity, traceContext } = this.#options
    const given = record.severity
    if (given !== 0) record.severity = 0
    if (!(json && looksLikeObject(text) && this.#fields.fill(record, text))) record.body = text
    record.body = withoutControlSequences(record.body)
    if (severity && record.severity === 0 && (textWins || given === 0) && this.#level.find(record.body)) {
      record.severity = this.#level.severity
      record.severityText = this.#level.text
    }
    if (record.severity === 0) record.severity = given
    if (traceContext && isZero(record.traceId)) findTraceContext(record, record.body)
  }
}

/** Clears a record for reuse. */
export function clearRecord(record: LogRecord): void {
  record.timeUs = 0
  record.observedUs = 0
  record.severity = 0
  record.severityText = ''
  record.body = ''
  record.eventName = ''
  record.traceId.fill(0)
  record.spanId.fill(0)
  record.flags = 0
  record.attributes.clear()
  record.droppedAttributes = 0
}

/** Cheap test that is true for every object. */
function looksLikeObject(text: string): boolean {
  if (text.length < 2 || text.length > longestJson) return false
  let from = 0
  while (isBlank(text.charCodeAt(from))) from++
  if (text[from] !== '{') return false
  let last = text.length - 1
  while (isBlank(text.charCodeAt(last))) last--
  return text[last] === '}'
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d
}
