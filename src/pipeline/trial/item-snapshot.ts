import { isDeepStrictEqual } from 'node:util'
import type { Attributes, AttributeValue } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import { Span } from '../../foundation/model/span.ts'

/** The properties of an item that can change, by key. Attributes are prefixed by `attributes.`. */
export type ItemSnapshot = ReadonlyMap<string, AttributeValue>

export interface Change {
  readonly key: string
  /** Undefined if it was added. */
  readonly before: AttributeValue | undefined
  /** Undefined if it was removed. */
  readonly after: AttributeValue | undefined
}

/** Differences, in the order of `before`, new keys last. */
export function changesBetween(before: ItemSnapshot, after: ItemSnapshot): Change[] {
  const changes: Change[] = []
  for (const [key, value] of before)
    if (!isDeepStrictEqual(after.get(key), value)) changes.push({ key, before: value, after: after.get(key) })
  for (const [key, value] of after)
    if (!before.has(key)) changes.push({ key, before: undefined, after: value })
  return changes
}

/** Current state of a span, a log record or a profile. */
export function snapshotOf(item: Span | LogRecord | Profile): ItemSnapshot {
  const snapshot = new Map<string, AttributeValue>()
  if (item instanceof Span) addSpan(item, snapshot)
  else if (item instanceof LogRecord) addLogRecord(item, snapshot)
  else
    for (const [i, sample] of item.samples.entries())
      addAttributes(sample.attributes, `samples[${i}].attributes.`, snapshot)
  return snapshot
}

export function attributesSnapshot(attributes: Attributes): ItemSnapshot {
  const snapshot = new Map<string, AttributeValue>()
  addAttributes(attributes, 'attributes.', snapshot)
  return snapshot
}

function addSpan(span: Span, to: Map<string, AttributeValue>): void {
  to.set('name', span.name)
  to.set('kind', span.kind)
  to.set('status', span.status)
  to.set('status message', span.statusMessage)
  to.set('trace state', span.traceState)
  addAttributes(span.attributes, 'attributes.', to)
}

function addLogRecord(record: LogRecord, to: Map<string, AttributeValue>): void {
  to.set('body', record.body)
  to.set('severity', record.severity)
  to.set('severity text', record.severityText)
  to.set('event name', record.eventName)
  addAttributes(record.attributes, 'attributes.', to)
}

function addAttributes(
  { keys, values, size }: Attributes,
  prefix: string,
  to: Map<string, AttributeValue>,
): void {
  for (let i = 0; i < size; i++) to.set(`${prefix}${keys[i]!}`, values[i]!)
}

const mostOfTitle = 100

/** Title of an item, in one line. */
export function titleOf(item: Span | LogRecord | Profile): string {
  if (item instanceof Span) return `span ${short(valueText(item.name))}`
  if (item instanceof LogRecord) return `log record ${short(valueText(item.eventName || item.body))}`
  return `profile ${item.kind} in ${valueText(item.unit)}`
}

/** Title of a point: its metric and attributes. */
export function pointTitle(metric: Metric, attributes: Attributes): string {
  const { keys, values, size } = attributes
  const labels = keys.slice(0, size).map((key, i) => `${visible(key)}=${valueText(values[i]!)}`)
  return `point ${short(`${visible(metric.name)}{${labels.join(', ')}}`)}`
}

export function resourceTitle(attributes: Attributes): string {
  return `resource ${short(valueText(attributes.get('service.name') ?? ''))}`
}

function short(text: string): string {
  return text.length > mostOfTitle ? `${text.slice(0, mostOfTitle)}…` : text
}

/** A value for display in a terminal. */
export function valueText(value: AttributeValue): string {
  return visible(JSON.stringify(value))
}

/** Replaces control characters, which a terminal would obey, by their code. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
    [...character].map(each => `\\u{${each.codePointAt(0)!.toString(16)}}`).join(''),
  )
}
