import type { Attributes, AttributeValue } from '../../model/attributes.ts'
import { LogRecord } from '../../model/log.ts'
import type { Metric } from '../../model/metric.ts'
import type { Profile } from '../../model/profile.ts'
import { Span } from '../../model/span.ts'

/** What can change in an item, key by key. Attributes have `attributes.` before their name. */
export type Portrait = ReadonlyMap<string, string>

export interface Change {
  readonly key: string
  /** undefined: it was not there. */
  readonly before: string | undefined
  /** undefined: it is gone. */
  readonly after: string | undefined
}

/** What differs, in the order of the first, new keys last. */
export function changesBetween(before: Portrait, after: Portrait): Change[] {
  const changes: Change[] = []
  for (const [key, value] of before)
    if (after.get(key) !== value) changes.push({ key, before: value, after: after.get(key) })
  for (const [key, value] of after)
    if (!before.has(key)) changes.push({ key, before: undefined, after: value })
  return changes
}

/** A span, a log record or a profile as it is now. */
export function portraitOf(item: Span | LogRecord | Profile): Portrait {
  const portrait = new Map<string, string>()
  if (item instanceof Span) drawSpan(item, portrait)
  else if (item instanceof LogRecord) drawLogRecord(item, portrait)
  else
    for (const [i, sample] of item.samples.entries())
      drawAttributes(sample.attributes, `samples[${i}].attributes.`, portrait)
  return portrait
}

export function attributesPortrait(attributes: Attributes): Portrait {
  const portrait = new Map<string, string>()
  drawAttributes(attributes, 'attributes.', portrait)
  return portrait
}

function drawSpan(span: Span, to: Map<string, string>): void {
  to.set('name', quoted(span.name))
  to.set('kind', String(span.kind))
  to.set('status', String(span.status))
  to.set('status message', quoted(span.statusMessage))
  to.set('trace state', quoted(span.traceState))
  drawAttributes(span.attributes, 'attributes.', to)
}

function drawLogRecord(record: LogRecord, to: Map<string, string>): void {
  to.set('body', quoted(record.body))
  to.set('severity', String(record.severity))
  to.set('severity text', quoted(record.severityText))
  to.set('event name', quoted(record.eventName))
  drawAttributes(record.attributes, 'attributes.', to)
}

function drawAttributes({ keys, values, size }: Attributes, prefix: string, to: Map<string, string>): void {
  for (let i = 0; i < size; i++) to.set(`${prefix}${visible(keys[i]!)}`, valueText(values[i]!))
}

function valueText(value: AttributeValue): string {
  return typeof value === 'string' ? quoted(value) : visible(JSON.stringify(value))
}

const mostOfTitle = 100

/** What an item is called in a heading, in one line. */
export function titleOf(item: Span | LogRecord | Profile): string {
  if (item instanceof Span) return `span ${short(quoted(item.name))}`
  if (item instanceof LogRecord) return `log record ${short(quoted(item.eventName || item.body))}`
  return `profile ${item.kind} in ${quoted(item.unit)}`
}

/** A point by its metric and its attributes. */
export function pointTitle(metric: Metric, attributes: Attributes): string {
  const labels = [...attributesPortrait(attributes)].map(([key, value]) => `${key.slice(11)}=${value}`)
  return `point ${short(`${visible(metric.name)}{${labels.join(', ')}}`)}`
}

export function resourceTitle(attributes: Attributes): string {
  return `resource ${short(valueText(attributes.get('service.name') ?? ''))}`
}

function short(text: string): string {
  return text.length > mostOfTitle ? `${text.slice(0, mostOfTitle)}…` : text
}

function quoted(text: string): string {
  return visible(JSON.stringify(text))
}

/** A terminal does as some characters say: they are shown by their code instead. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
    [...character].map(each => `\\u{${each.codePointAt(0)!.toString(16)}}`).join(''),
  )
}
