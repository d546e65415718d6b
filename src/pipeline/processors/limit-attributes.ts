import type { Attributes, AttributeValue } from '../../foundation/model/attributes.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { signals } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'
import { bytesOver, cutText } from './cut-text.ts'
import type { LimitSettings } from './limit-settings.ts'
import type { Processor, Stage, Verdict } from './processor.ts'

/**
 * Limits number and size of attributes, by `limits.attributes`: values are truncated; attributes whose key is too long,
 * and the last attributes above the maximum number, are dropped. Spans and records count their losses in
 * `droppedAttributes`.
 */
export const limitAttributes: Processor<LimitSettings> = {
  name: 'limit_attributes',
  summary: 'Limits the number and size of attributes, and the length of log bodies',
  signals,
  compile({ limits: { attributes } }, _env, before) {
    if (!attributes.enabled) return undefined
    const counts = before instanceof AttributeStage ? before.counts : new AttributeCounts()
    return new AttributeStage(attributes, counts)
  },
}

/** Truncated and dropped data so far, by the name of the setting. */
class AttributeCounts {
  max_resource_attributes = 0
  max_attributes = 0
  max_attribute_key_size = 0
  /** Values, names and status messages. */
  max_attribute_value_size = 0
  max_body_size = 0
}

type AttributeLimits = LimitSettings['limits']['attributes']
type Count = 'max_resource_attributes' | 'max_attributes'

/** Maximum capacity that a truncated set keeps for the next item. */
const keptSlots = 1024

class AttributeStage implements Stage {
  readonly lastingMs = Number.POSITIVE_INFINITY
  readonly counts: AttributeCounts
  readonly #limits: AttributeLimits
  readonly #protected: ReadonlySet<string>

  constructor(limits: AttributeLimits, counts: AttributeCounts) {
    this.counts = counts
    this.#limits = limits
    this.#protected = new Set(limits.protected_attributes)
  }

  resource(resource: Resource): Resource | undefined {
    const attributes = resource.attributes.copy()
    const { counts } = this
    const cutBefore = counts.max_attribute_value_size
    const dropped = this.#limit(attributes, this.#limits.max_resource_attributes, 'max_resource_attributes')
    return dropped === 0 && counts.max_attribute_value_size === cutBefore ? resource : { attributes }
  }

  scope(scope: Scope): Scope {
    const name = this.#text(scope.name)
    const version = this.#text(scope.version)
    if (scope.attributes === undefined)
      return name === scope.name && version === scope.version ? scope : { ...scope, name, version }
    const attributes = scope.attributes.copy()
    this.#ofItem(attributes)
    return { ...scope, name, version, attributes }
  }

  span(span: Span): Verdict {
    span.name = this.#text(span.name)
    span.statusMessage = this.#text(span.statusMessage)
    span.droppedAttributes = this.#ofItem(span.attributes)
    return ''
  }

  log(record: LogRecord): Verdict {
    record.severityText = this.#text(record.severityText)
    record.eventName = this.#text(record.eventName)
    const body = cutText(record.body, this.#limits.max_body_size)
    if (body !== record.body) {
      record.body = body
      this.counts.max_body_size++
    }
    record.droppedAttributes = this.#ofItem(record.attributes)
    return ''
  }

  series(attributes: Attributes, _metric: Metric): Verdict {
    this.#ofItem(attributes)
    return ''
  }

  exemplar(attributes: Attributes): void {
    this.#ofItem(attributes)
  }

  profile({ samples }: Profile): Verdict {
    for (const { attributes } of samples) this.#ofItem(attributes)
    return ''
  }

  counters(emit: (rule: string, outcome: string, total: number) => void): void {
    const { counts } = this
    emit('max_resource_attributes', 'dropped', counts.max_resource_attributes)
    emit('max_attributes', 'dropped', counts.max_attributes)
    emit('max_attribute_key_size', 'dropped', counts.max_attribute_key_size)
    emit('max_attribute_value_size', 'truncated', counts.max_attribute_value_size)
    emit('max_body_size', 'truncated', counts.max_body_size)
  }

  #ofItem(attributes: Attributes): number {
    return this.#limit(attributes, this.#limits.max_attributes, 'max_attributes')
  }

  /** Limits a set; returns the number of dropped attributes. Takes linear time. */
  #limit(attributes: Attributes, most: number, count: Count): number {
    const { keys, values, size } = attributes
    const { counts } = this
    const { max_attribute_key_size, max_attribute_value_size } = this.#limits
    const protectedKeys = this.#protected
    // Protected attributes are always kept, wherever they are in the set.
    let room = most
    if (size > most) for (let i = 0; i < size; i++) if (protectedKeys.has(keys[i]!)) room--
    let kept = 0
    for (let i = 0; i < size; i++) {
      const key = keys[i]!
      const isSafe = size > most && protectedKeys.has(key)
      if (bytesOver(key, max_attribute_key_size) > max_attribute_key_size && !protectedKeys.has(key)) {
        counts.max_attribute_key_size++
        continue
      }
      if (!isSafe && room <= 0) {
        counts[count]++
        continue
      }
      if (!isSafe) room--
      const value = values[i]!
      keys[kept] = key
      values[kept] = isSmall(value, max_attribute_value_size) ? value : this.#cut(value)
      kept++
    }
    if (kept < size) shrink(attributes, kept)
    return size - kept
  }

  #cut(value: AttributeValue): AttributeValue {
    if (typeof value === 'string') return this.#text(value)
    const limit = this.#limits.max_attribute_value_size
    const cut = typeof value === 'object' ? cutTexts(value, limit) : value
    if (cut !== value) this.counts.max_attribute_value_size++
    return cut
  }

  #text(text: string): string {
    const cut = cutText(text, this.#limits.max_attribute_value_size)
    if (cut !== text) this.counts.max_attribute_value_size++
    return cut
  }
}

/** Whether a value is certainly within the limit. */
function isSmall(value: AttributeValue, limit: number): boolean {
  return typeof value === 'string' ? value.length * 3 <= limit : typeof value !== 'object'
}

/** Longest prefix of a list whose texts take at most `limit` bytes together. An empty text counts as one byte. */
function cutTexts(texts: readonly string[], limit: number): readonly string[] {
  let units = 0
  for (let i = 0; i < texts.length && units <= limit; i++) units += texts[i]!.length + 1
  if (units * 3 <= limit) return texts
  let room = limit
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!
    const cut = cutText(text, room)
    if (room > 0 && cut === text) {
      room -= Math.max(1, Buffer.byteLength(text))
      continue
    }
    const kept = texts.slice(0, i)
    if (cut !== '') kept.push(cut)
    return kept
  }
  return texts
}

/** Releases the dropped values: the set and its arrays are reused. */
function shrink(attributes: Attributes, size: number): void {
  const { keys, values } = attributes
  for (let i = size; i < attributes.size; i++) values[i] = ''
  attributes.size = size
  if (keys.length <= keptSlots) return
  keys.length = size
  values.length = size
}
