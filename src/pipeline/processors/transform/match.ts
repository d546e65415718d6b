import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { LogRecord } from '../../../foundation/model/log.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import type { Profile } from '../../../foundation/model/profile.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import { type Signal, signals } from '../../../foundation/model/signal.ts'
import { type Span, SpanKind, StatusCode } from '../../../foundation/model/span.ts'
import type { MatchSettings } from './keys.ts'
import { anyTest, valueTest } from './value-test.ts'

/** Items that a rule can match. Each signal's rules only get items of that signal. */
export type Item = Span | Metric | LogRecord | Profile

/** A condition of a rule. `attributes` are the item's, or for a metric those of one series. */
export type Condition = (item: Item, attributes: Attributes, resource: Resource) => boolean

/** Keys of `match` by the only signal that they apply to. */
const ownKeys = {
  metric_names: 'metrics',
  span_names: 'traces',
  span_kinds: 'traces',
  span_status: 'traces',
  log_bodies: 'logs',
  min_severity: 'logs',
} as const satisfies Partial<Record<keyof MatchSettings, Signal>>
type OwnKey = keyof typeof ownKeys

/** Keys with conditions on the item itself. */
export function itemKeys(match: MatchSettings): string[] {
  return [...(Object.keys(match.attributes).length > 0 ? ['attributes'] : []), ...ownKeysIn(match)]
}

function ownKeysIn(match: MatchSettings): OwnKey[] {
  return (Object.keys(ownKeys) as OwnKey[]).filter(key => {
    const wanted = match[key]
    return typeof wanted === 'object' ? wanted.length > 0 : wanted !== 0 && wanted !== 'any'
  })
}

/** Signals whose items a rule can match. */
export function signalsOf(match: MatchSettings): readonly Signal[] {
  const own = ownKeysIn(match)
  return (match.signal_types.length > 0 ? match.signal_types : signals).filter(signal =>
    own.every(key => ownKeys[key] === signal),
  )
}

/** Reason why no item can match; '' if one can. */
export function matchFault(match: MatchSettings): string {
  const [first, ...others] = ownKeysIn(match)
  if (first === undefined) return ''
  const signal = ownKeys[first]
  const other = others.find(key => ownKeys[key] !== signal)
  if (other !== undefined)
    return `"${first}" matches only ${signal} and "${other}" only ${ownKeys[other]}; split it into two rules`
  return match.signal_types.length > 0 && !match.signal_types.includes(signal)
    ? `"${first}" matches only ${signal}, which "signal_types" excludes`
    : ''
}

/** Conditions on items of a signal, the cheapest first. The rule can match the signal. */
export function itemConditions(match: MatchSettings): readonly Condition[] {
  const { metric_names, span_names, span_kinds, span_status, min_severity, log_bodies } = match
  const conditions: Condition[] = []
  if (span_kinds.length > 0) {
    const kinds = span_kinds.map(kind => SpanKind[kind])
    conditions.push(item => kinds.includes((item as Span).kind))
  }
  if (span_status !== 'any') {
    const status = StatusCode[span_status]
    conditions.push(item => (item as Span).status === status)
  }
  if (min_severity > 0) conditions.push(item => (item as LogRecord).severity >= min_severity)
  if (metric_names.length > 0) conditions.push(metricNameCondition(anyTest(metric_names)))
  const ofResource = attributesTest(match.resource_attributes)
  if (ofResource !== undefined) conditions.push(resourceCondition(ofResource))
  if (span_names.length > 0) {
    const isWanted = anyTest(span_names)
    conditions.push(item => isWanted((item as Span).name))
  }
  const ofItem = attributesTest(match.attributes)
  if (ofItem !== undefined) conditions.push((_, attributes) => ofItem(attributes))
  if (log_bodies.length > 0) {
    const patterns = log_bodies.map(source => new SearchPattern(source))
    conditions.push(item => anyIn(patterns, (item as LogRecord).body))
  }
  return conditions
}

function anyIn(patterns: readonly SearchPattern[], text: string): boolean {
  for (let i = 0; i < patterns.length; i++) if (patterns[i]!.test(text)) return true
  return false
}

/** Whether attributes have all the wanted values; undefined if there are none. */
export function attributesTest(
  wanted: Readonly<Record<string, string>>,
): ((attributes: Attributes) => boolean) | undefined {
  const tests = Object.entries(wanted).map(([key, value]) => ({ key, matches: valueTest(value) }))
  if (tests.length === 0) return undefined
  return attributes => {
    for (let i = 0; i < tests.length; i++) {
      const { key, matches } = tests[i]!
      if (!matches(attributes.get(key))) return false
    }
    return true
  }
}

/** The series of a metric are adjacent, so its name is checked once. */
function metricNameCondition(isWanted: (name: string) => boolean): Condition {
  let last = ''
  let lastHolds = isWanted('')
  return item => {
    const { name } = item as Metric
    if (name !== last) {
      last = name
      lastHolds = isWanted(name)
    }
    return lastHolds
  }
}

/** Attributes of a resource never change, so each is checked once. */
function resourceCondition(matches: (attributes: Attributes) => boolean): Condition {
  const known = new WeakMap<Resource, boolean>()
  return (_item, _attributes, resource) => {
    let isWanted = known.get(resource)
    if (isWanted === undefined) {
      isWanted = matches(resource.attributes)
      known.set(resource, isWanted)
    }
    return isWanted
  }
}
