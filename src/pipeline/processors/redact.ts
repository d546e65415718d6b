import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import type { Attributes, AttributeValue } from '../../foundation/model/attributes.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { signals } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'
import type { Processor, ProcessorEnv, Stage, Verdict } from './processor.ts'
import { Hint } from './redact/detector.ts'
import { Redactor, type Rule, type RuleCounts } from './redact/redactor.ts'
import { rulesOf } from './redact/rules.ts'
import { secretKey } from './redact/secret-names.ts'
import type { RedactionConfig, RedactSettings } from './redact/settings.ts'

/** Maximum cached attribute keys. */
const mostKeys = 4096
/** Maximum length of a cached key, and of the clean texts cached with it. */
const longestNoted = 256
const longestFlag = 64
/** Smallest integers checked as card numbers, by patterns, and with a key that hints at personal data. */
const shortestCard = 1e11
const shortestNumber = 1e8
const shortestHinted = 1e5
const phoneKey = /phone|mobile|fax|msisdn|(?:^|[._-])tel(?:$|[._-])/i
const ssnKey = /ssn|social.?security|taxpayer/i

/** Cached properties of an attribute key. */
interface KeyNotes {
  readonly allowed: boolean
  /** Rule for values that are secret as a whole. */
  readonly rule: Rule | undefined
  readonly hints: number
  /** Two recent texts without findings: methods, routes and names recur. */
  clean: string
  cleanBefore: string
}

export const redact: Processor<RedactSettings> = {
  name: 'redact',
  summary: 'Redacts personal data and secrets in attributes, log bodies and names',
  signals,
  compile({ pii_redaction: config }, env, before) {
    if (!config.enabled) return undefined
    const former = before instanceof RedactStage ? before : undefined
    const rules = rulesOf(config, former?.counts)
    return rules.length === 0 ? undefined : new RedactStage(config, rules, env, former)
  },
}

class RedactStage implements Stage {
  readonly lastingMs = Number.POSITIVE_INFINITY
  /** By rule name. */
  readonly counts: ReadonlyMap<string, RuleCounts>
  readonly redactor: Redactor
  readonly #keys = small(new BoundedMap<string, KeyNotes>(mostKeys))
  readonly #byType: ReadonlyMap<string, Rule>
  readonly #allowed: ReadonlySet<string>
  readonly #matchesNumbers: boolean
  readonly #config: RedactionConfig
  /** Last severity text without findings. */
  #severity = ''

  constructor(
    config: RedactionConfig,
    rules: readonly Rule[],
    env: ProcessorEnv,
    former: RedactStage | undefined,
  ) {
    this.#config = config
    this.counts = new Map(rules.map(rule => [rule.name, rule.counts]))
    this.#byType = new Map(rules.map(rule => [rule.type, rule]))
    this.#allowed = new Set(config.allowed_attributes)
    this.#matchesNumbers = this.#byType.has('regex')
    const hashes = rules.some(rule => rule.mode === 'hash')
    this.redactor = new Redactor(rules, {
      maxBytes: config.max_scan_bytes,
      key: hashes
        ? config.hash_key === ''
          ? env.installKey()
          : Buffer.from(config.hash_key)
        : new Uint8Array(),
      nowMs: env.nowMs,
    })
    this.redactor.truncated = former?.redactor.truncated ?? 0
  }

  resource(resource: Resource): Resource {
    const attributes = resource.attributes.copy()
    return this.#attributes(attributes) ? { attributes } : resource
  }

  scope(scope: Scope): Scope {
    const name = this.#name(scope.name)
    const version = this.#name(scope.version)
    const schemaUrl = scope.schemaUrl === undefined ? undefined : this.#name(scope.schemaUrl)
    const attributes = scope.attributes?.copy()
    const changed = attributes !== undefined && this.#attributes(attributes)
    const isSame = name === scope.name && version === scope.version && schemaUrl === scope.schemaUrl
    return isSame && !changed ? scope : { name, version, attributes, schemaUrl }
  }

  span(span: Span): Verdict {
    if (this.#config.scan_span_names) span.name = this.#name(span.name)
    if (span.statusMessage !== '') span.statusMessage = this.#name(span.statusMessage)
    // A partly replaced value would be invalid (W3C Trace Context, 3.3.1).
    if (span.traceState !== '' && this.#name(span.traceState) !== span.traceState) span.traceState = ''
    this.#attributes(span.attributes)
    return ''
  }

  log(record: LogRecord): Verdict {
    if (this.#config.scan_log_bodies) record.body = this.#name(record.body)
    if (record.severityText !== this.#severity) {
      record.severityText = this.#name(record.severityText)
      if (this.redactor.isClean) this.#severity = record.severityText
    }
    if (record.eventName !== '') record.eventName = this.#name(record.eventName)
    this.#attributes(record.attributes)
    return ''
  }

  series(attributes: Attributes, _metric: Metric, _resource: Resource): Verdict {
    this.#attributes(attributes)
    return ''
  }

  exemplar(attributes: Attributes): void {
    this.#attributes(attributes)
  }

  profile(profile: Profile): Verdict {
    for (let i = 0; i < profile.samples.length; i++) this.#attributes(profile.samples[i]!.attributes)
    return ''
  }

  counters(emit: (rule: string, outcome: string, total: number) => void): void {
    const { rules, truncated } = this.redactor
    const emitted = new Set<RuleCounts>()
    for (const { name, mode, counts } of rules) {
      if (emitted.has(counts)) continue
      emitted.add(counts)
      if (mode !== 'count' || counts.redacted > 0) emit(name, 'redacted', counts.redacted)
      if (mode === 'count' || counts.found > 0) emit(name, 'found', counts.found)
    }
    emit('max_scan_bytes', 'unscanned', truncated)
  }

  /** Redacts a mandatory text: if a rule drops it, it becomes the replacement. */
  #name(text: string): string {
    const redacted = this.redactor.text(text, 0)
    return this.redactor.drops ? this.#config.replacement : redacted
  }

  /** Redacts in place. Returns whether anything changed. */
  #attributes(attributes: Attributes): boolean {
    const { keys, values, size } = attributes
    let changed = false
    let kept = 0
    for (let i = 0; i < size; i++) {
      const key = keys[i]!
      const value = values[i]!
      const redacted = typeof value === 'boolean' ? value : this.#value(value, this.#notes(key))
      if (redacted !== value) changed = true
      if (redacted === undefined) continue
      keys[kept] = key
      values[kept++] = redacted
    }
    attributes.size = kept
    return changed
  }

  /** Redacted value; undefined if its attribute is dropped. */
  #value(value: AttributeValue, notes: KeyNotes): AttributeValue | undefined {
    if (notes.allowed || typeof value === 'boolean') return value
    if (typeof value === 'object') return this.#list(value, notes)
    if (notes.rule !== undefined) return this.#secret(value, notes.rule, notes.hints)
    if (typeof value === 'number') return this.#number(value, notes.hints)
    if (value === notes.clean || value === notes.cleanBefore) return value
    const redacted = this.#text(value, notes.hints)
    if (this.redactor.isClean && value.length <= longestNoted) {
      notes.cleanBefore = notes.clean
      notes.clean = value
    }
    return redacted
  }

  #text(text: string, hints: number): string | undefined {
    const redacted = this.redactor.text(text, hints)
    return this.redactor.drops ? undefined : redacted
  }

  /** Redacts a value that is secret whatever its content. */
  #secret<V extends string | number>(value: V, rule: Rule, hints: number): V | string | undefined {
    const text = String(value)
    const whole = this.redactor.whole(text, rule)
    if (whole === text) return value
    if (rule.mode === 'count') {
      rule.counts.found++
      const redacted = this.#text(text, hints)
      return redacted === text ? value : redacted
    }
    rule.counts.redacted++
    return rule.mode === 'drop' ? undefined : whole
  }

  /** Card numbers may be integer attributes. Other integers are personal only if the key or a pattern says so. */
  #number(value: number, hints: number): number | string | undefined {
    const size = Math.abs(value)
    if (size < shortestHinted || !Number.isInteger(value)) return value
    if (hints === 0 && !(this.#matchesNumbers && size >= shortestNumber)) {
      if (size < shortestCard) return value
      // Card numbers begin with 2 to 6, current epoch times with 1.
      const first = Math.trunc(size / 10 ** Math.floor(Math.log10(size)))
      if (first < 2 || first > 6) return value
    }
    const text = String(value)
    const redacted = this.#text(text, hints)
    return redacted === text ? value : redacted
  }

  #list(values: readonly string[], notes: KeyNotes): readonly string[] | undefined {
    let copy: string[] | undefined
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!
      const rule = notes.rule ?? (i > 0 ? this.#ruleOfFlag(values[i - 1]!) : undefined)
      const redacted =
        rule === undefined ? this.#text(value, notes.hints) : this.#secret(value, rule, notes.hints)
      if (redacted === undefined) return undefined
      if (redacted === value) continue
      copy ??= values.slice()
      copy[i] = redacted
    }
    return copy ?? values
  }

  /** For the value after `--password` in a list of arguments. */
  #ruleOfFlag(argument: string): Rule | undefined {
    if (argument.charCodeAt(0) !== 45 || argument.length > longestFlag || argument.includes('='))
      return undefined
    return this.#ruleOfKey(argument.slice(argument.startsWith('--') ? 2 : 1))
  }

  #ruleOfKey(key: string): Rule | undefined {
    const kind = secretKey(key)
    if (kind === undefined) return undefined
    return this.#byType.get(kind) ?? (kind === 'auth_header' ? this.#byType.get('api_key') : undefined)
  }

  #notes(key: string): KeyNotes {
    const known = this.#keys.get(key)
    if (known !== undefined) return known
    const notes: KeyNotes = {
      allowed: this.#allowed.has(key),
      rule: this.#ruleOfKey(key),
      hints: (phoneKey.test(key) ? Hint.phone : 0) | (ssnKey.test(key) ? Hint.ssn : 0),
      clean: '',
      cleanBefore: '',
    }
    // Longer keys are in no convention, and would take memory.
    if (key.length <= longestNoted) this.#keys.set(key, notes)
    return notes
  }
}
