// Display of items by signal: one line, and a request with only that item.

import { hexOf } from '../../foundation/lib/hex.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import { logEncoding } from '../../pipeline/exporters/otlp/encode-log.ts'
import { metricEncoding } from '../../pipeline/exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../../pipeline/exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../../pipeline/exporters/otlp/encode-trace.ts'
import { type Encoding, RequestBuilder } from '../../pipeline/exporters/otlp/request.ts'
import { unscanned } from '../../pipeline/processors/redact/redactor.ts'
import type { SignalName } from '../../view/api/ui/source.ts'
import type { ShownText } from './shown-text.ts'

export type TappedItem = Span | Metric | LogRecord | Profile

/** An item in words. */
export interface Summary {
  readonly time_ms: number
  readonly service: string
  readonly title: string
  readonly error: boolean
  readonly duration_ms: number | null
  readonly detail: string
}

/** Display of the items of one signal. */
export interface Tapped<T = TappedItem> {
  /** Whether it matches: failed, if only failed items are requested, and long enough. */
  matches(item: T, errors: boolean, minMs: number): boolean
  summary(resource: Resource, item: T): Summary
  /** An export request with only this item, redacted. Throws if it is too large. */
  request(resource: Resource, scope: Scope, item: T): Uint8Array
}

/** Lowest SeverityNumber of an error (logs.proto). */
const errorSeverity = 17
/** Maximum number of points of a metric, or stacks of a profile, to copy without blocking. */
const mostParts = 5000
/** Attributes in one line. */
const mostAttributes = 8

export class Summaries {
  readonly #shown: ShownText
  readonly #maxText: number
  readonly #resources = new WeakMap<Resource, Resource>()
  readonly #scopes = new WeakMap<Scope, Scope>()

  /** `shown` redacts texts; those of a summary are cut at `maxText`. */
  constructor(shown: ShownText, maxText: number) {
    this.#shown = shown
    this.#maxText = maxText
  }

  of(signal: SignalName): Tapped {
    switch (signal) {
      case 'traces':
        return this.#spans()
      case 'metrics':
        return this.#metrics()
      case 'logs':
        return this.#logs()
      case 'profiles':
        return this.#profiles()
    }
  }

  #spans(): Tapped<Span> {
    const copy = new Span()
    return {
      matches: (span, errors, minMs) =>
        (!errors || span.status === StatusCode.error) && span.endUs - span.startUs >= minMs * 1000,
      summary: (resource, span) => ({
        ...this.#named(resource, span.endUs, span.name),
        error: span.status === StatusCode.error,
        duration_ms: (span.endUs - span.startUs) / 1000,
        detail: this.#joined([
          kindNames[span.kind] ?? '',
          this.#listed(span.attributes),
          `trace_id=${hexOf(span.traceId)}`,
        ]),
      }),
      request: this.#encoded(traceEncoding, span => this.#copyOfSpan(copy, span)),
    }
  }

  #logs(): Tapped<LogRecord> {
    const copy = new LogRecord()
    return {
      matches: (record, errors) => !errors || record.severity >= errorSeverity,
      summary: (resource, record) => ({
        ...this.#named(resource, record.timeUs || record.observedUs, record.body || record.eventName),
        error: record.severity >= errorSeverity,
        duration_ms: null,
        detail: this.#joined([
          this.#text(record.severityText),
          this.#listed(record.attributes),
          record.traceId.some(byte => byte !== 0) ? `trace_id=${hexOf(record.traceId)}` : '',
        ]),
      }),
      request: this.#encoded(logEncoding, record => this.#copyOfRecord(copy, record)),
    }
  }

  #metrics(): Tapped<Metric> {
    return {
      matches: (_metric, errors) => !errors,
      summary: (resource, metric) => {
        const { name, unit, kind, points } = metric
        const first = points[0]
        const value = first === undefined ? '' : 'value' in first ? first.value : `count ${first.count}`
        return {
          ...this.#named(resource, first?.timeUs ?? 0, name),
          error: false,
          duration_ms: null,
          detail: this.#joined([
            `${kind} of ${points.length} ${points.length === 1 ? 'point' : 'points'}`,
            first === undefined ? '' : `${value} ${unit}`.trim(),
            first === undefined ? '' : this.#listed(first.attributes),
          ]),
        }
      },
      request: this.#encoded(metricEncoding, metric => this.#copyOfMetric(metric)),
    }
  }

  #profiles(): Tapped<Profile> {
    return {
      matches: (_profile, errors) => !errors,
      summary: (resource, profile) => {
        const { kind, unit, startUs, durationUs, samples } = profile
        const total = samples.reduce((sum, { value }) => sum + value, 0)
        return {
          ...this.#named(resource, startUs + durationUs, kind),
          error: false,
          duration_ms: durationUs / 1000,
          detail: `${samples.length} ${samples.length === 1 ? 'stack' : 'stacks'}, ${total} ${unit}`,
        }
      },
      request: this.#encoded(profileEncoding(), profile => this.#copyOfProfile(profile)),
    }
  }

  #encoded<T>(encoding: Encoding<T>, copied: (item: T) => T): Tapped<T>['request'] {
    const builder = new RequestBuilder(encoding, { keepBytes: 64 * 1024 })
    return (resource, scope, item) => {
      try {
        builder.add(this.#resourceOf(resource), this.#scopeOf(scope), copied(item))
      } catch (error) {
        builder.take()
        throw error
      }
      return builder.take()[0]?.body ?? new Uint8Array()
    }
  }

  #named(resource: Resource, timeUs: number, title: string) {
    const service = String(resource.attributes.get('service.name') ?? '')
    return { time_ms: timeUs / 1000, service, title: this.#text(title) }
  }

  /**
   * For display, on one line. Long texts are cut before redaction, with a margin for texts that get shorter.
   * `key`: the attribute of this value.
   */
  #text(text: string, key?: string): string {
    return this.#shown(beginning(text, 4 * this.#maxText), key)
      .replace(/\s+/g, ' ')
      .slice(0, this.#maxText)
      .trimEnd()
  }

  #joined(texts: readonly string[]): string {
    return texts.filter(text => text !== '').join(' · ')
  }

  /** The most important parts come first. */
  #listed({ keys, values, size }: Attributes): string {
    const texts: string[] = []
    for (let i = 0; i < size && i < mostAttributes; i++)
      texts.push(`${keys[i]}=${this.#text(String(values[i]), keys[i])}`)
    return texts.join(' ').slice(0, 2 * this.#maxText)
  }

  #copyOfSpan(copy: Span, span: Span): Span {
    const shown = this.#shown
    copy.traceId.set(span.traceId)
    copy.spanId.set(span.spanId)
    copy.parentSpanId.set(span.parentSpanId)
    copy.flags = span.flags
    copy.traceState = shown(span.traceState)
    copy.name = shown(span.name)
    copy.kind = span.kind
    copy.startUs = span.startUs
    copy.endUs = span.endUs
    copy.status = span.status
    copy.statusMessage = shown(span.statusMessage)
    copy.droppedAttributes = span.droppedAttributes
    this.#fill(copy.attributes, span.attributes)
    return copy
  }

  #copyOfRecord(copy: LogRecord, record: LogRecord): LogRecord {
    const shown = this.#shown
    copy.timeUs = record.timeUs
    copy.observedUs = record.observedUs
    copy.severity = record.severity
    copy.severityText = shown(record.severityText)
    copy.body = shown(record.body)
    copy.eventName = shown(record.eventName)
    copy.traceId.set(record.traceId)
    copy.spanId.set(record.spanId)
    copy.flags = record.flags
    copy.droppedAttributes = record.droppedAttributes
    this.#fill(copy.attributes, record.attributes)
    return copy
  }

  #copyOfProfile(profile: Profile): Profile {
    checkParts(profile.samples.length)
    const samples = profile.samples.map(sample => ({
      ...sample,
      attributes: this.#copyOf(sample.attributes),
    }))
    return { ...profile, samples }
  }

  #copyOfMetric(metric: Metric): Metric {
    checkParts(metric.points.length)
    const points = metric.points.map(point => ({
      ...point,
      attributes: this.#copyOf(point.attributes),
      ...('exemplars' in point && {
        exemplars: point.exemplars?.map(each => ({ ...each, attributes: this.#copyOf(each.attributes) })),
      }),
    }))
    return { ...metric, points } as Metric
  }

  /** One for each, as each occurs once in the request. */
  #resourceOf(resource: Resource): Resource {
    let copy = this.#resources.get(resource)
    if (copy === undefined) {
      copy = { attributes: this.#copyOf(resource.attributes, 'service.name') }
      this.#resources.set(resource, copy)
    }
    return copy
  }

  #scopeOf(scope: Scope): Scope {
    if (scope.attributes === undefined) return scope
    let copy = this.#scopes.get(scope)
    if (copy === undefined) {
      copy = { ...scope, attributes: this.#copyOf(scope.attributes) }
      this.#scopes.set(scope, copy)
    }
    return copy
  }

  #copyOf(attributes: Attributes, plain = ''): Attributes {
    const copy = new Attributes()
    this.#fill(copy, attributes, plain)
    return copy
  }

  #fill(copy: Attributes, { keys, values, size }: Attributes, plain = ''): void {
    copy.clear()
    for (let i = 0; i < size; i++) {
      const key = keys[i]!
      copy.add(key, key === plain ? values[i]! : this.#valueOf(values[i]!, key))
    }
  }

  #valueOf(value: AttributeValue, key: string): AttributeValue {
    if (typeof value === 'string') return this.#shown(value, key)
    return Array.isArray(value) ? value.map(text => this.#shown(text, key)) : value
  }
}

const kindNames: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(SpanKind).map(([name, kind]) => [kind, name]),
)

/** The beginning of a text, in whole words: half a token or address would not be recognised by redaction. */
function beginning(text: string, length: number): string {
  if (text.length <= length) return text
  let end = length
  while (end > 0 && !isBreak(text.charCodeAt(end - 1))) end--
  return end === 0 ? unscanned : text.slice(0, end)
}

/** White space, and separators of JSON values. */
function isBreak(unit: number): boolean {
  return unit <= 32 || unit === 34 || unit === 44 || unit === 125
}

function checkParts(parts: number): void {
  if (parts > mostParts) throw new RangeError(`cannot show ${parts} parts of an item`)
}
