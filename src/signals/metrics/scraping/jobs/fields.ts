import { formatDuration } from '../../../../foundation/lib/duration.ts'
import { hideAll, map, soundsSecret } from '../../../../foundation/schema/collections.ts'
import { count } from '../../../../foundation/schema/kinds.ts'
import type { Kind } from '../../../../foundation/schema/tree.ts'
import { describe, isBroken, type Scalar, secretsIn } from '../../../../foundation/schema/value.ts'
import { durationOf } from '../duration-text.ts'
import type { FieldKind } from './form.ts'

// Values as Prometheus reads them from YAML 1.1 (gopkg.in/yaml.v2): any scalar is accepted as text.

interface Parser<T> {
  readonly expects: string
  readonly json: Readonly<Record<string, unknown>>
  /** Undefined or a reason if the scalar is not such a value. */
  parse(scalar: Scalar): T | undefined | { readonly why: string }
  show?(value: T): string | number | boolean
  /** Whether an invalid text may contain a password. */
  leaks?(text: string): boolean
}

function field<T extends string | number | boolean>(own: Parser<T>): FieldKind<T> {
  return {
    expects: own.expects,
    json: own.json,
    read(value, key, report) {
      if (isBroken(value)) return undefined
      const parsed = value.type === 'scalar' && value.value !== null ? own.parse(value) : undefined
      if (parsed !== undefined && typeof parsed !== 'object') {
        if (secretsIn(value).length > 0) report.hide?.(String(own.show?.(parsed) ?? parsed))
        return parsed
      }
      const why = parsed === undefined ? '' : `; ${parsed.why}`
      const hidden = report.secret || (value.type === 'scalar' && own.leaks?.(value.text) === true)
      const found = describe(value, hidden)
      report.problem(value.place, key, `expected ${own.expects}, found ${found}${why}`, hidden)
      return undefined
    },
    show: (value, hide) => hide(own.show?.(value) ?? value),
  }
}

/** Text; a number or a boolean stands for its text, and a key without a value for the empty text. */
export const anyText: FieldKind<string> = {
  ...field<string>({
    expects: 'text',
    json: { type: ['string', 'number', 'boolean', 'null'] },
    parse: ({ text }) => (text.includes('\0') ? { why: 'it has a NUL character' } : text),
  }),
  nothing: '',
}

/** The same within a list or a map, where an empty entry is an empty text. */
export const entryText: Kind<string> = {
  ...anyText,
  read: (value, key, report) =>
    value.type === 'scalar' && value.value === null ? '' : anyText.read(value, key, report),
}

/** A text with a check. `fault` returns the reason why it is invalid, '' if it is valid. */
export function textThat(expects: string, fault: (text: string) => string): FieldKind<string> {
  return { ...field(textParser(expects, fault)), nothing: '' }
}

/** As `textThat`, for a URL or address whose user and password are not shown. */
export function addressThat(expects: string, fault: (text: string) => string): FieldKind<string> {
  return {
    ...field({
      ...textParser(expects, fault),
      show: address => address.replace(/^([a-z]+:\/\/)[^/@]*@/i, '$1[REDACTED]@'),
      leaks: address => address.includes('@'),
    }),
    nothing: '',
  }
}

function textParser(expects: string, fault: (text: string) => string): Parser<string> {
  return {
    expects,
    json: { type: 'string' },
    parse({ text }) {
      const why = fault(text)
      return why === '' ? text : { why }
    },
  }
}

const words: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', 'on', 'y'].map(word => [word, true] as const),
  ...['false', 'no', 'off', 'n'].map(word => [word, false] as const),
])

export const anyBoolean: FieldKind<boolean> = field<boolean>({
  expects: 'true or false',
  json: { type: ['boolean', 'string', 'null'] },
  parse({ value, text, loose }) {
    if (typeof value === 'boolean') return value
    if (typeof value !== 'string') return undefined
    // A quoted value is text for Prometheus; the other boolean words of YAML 1.1 arrive here as text.
    if (/^(true|false)$/i.test(text)) return loose ? words.get(text) : { why: `use ${text} without quotes` }
    return words.get(text.toLowerCase())
  },
})

export const anyCount: FieldKind<number> = { ...count, json: { type: ['integer', 'string', 'null'] } }

/** Maximum delay of a timer. */
const longestMs = 24 * 86_400_000

/** A duration in milliseconds; 0 counts as omitted, any other is at least `minMs`. */
export function anyDuration(minMs: number): FieldKind<number> {
  return field<number>({
    expects: 'a duration such as "30s" or "1h30m"',
    json: { type: ['string', 'integer', 'null'] },
    parse({ text, value }) {
      const ms = durationOf(text)
      if (ms === undefined) {
        const bare = typeof value === 'number' || /^\d+$/.test(text)
        return bare ? { why: `no unit; use ${text}s or ${text}ms` } : undefined
      }
      if (ms > longestMs) return { why: `the maximum is ${formatDuration(longestMs)}` }
      return ms !== 0 && ms < minMs ? { why: `the minimum is ${formatDuration(minMs)}` } : ms
    },
    show: formatDuration,
  })
}

const units = ['', 'K', 'M', 'G', 'T', 'P', 'E']

/** Bytes from a size of Prometheus (`units.ParseBase2Bytes`): powers of 1024, and a unit is required. */
function parseSize(text: string): number | undefined {
  if (text === '0') return 0
  if (!/^(?:\d{1,15}(?:\.\d{0,9})?[KMGTPE]?i?B)+$/.test(text) || text.length > 64) return undefined
  let bytes = 0
  for (const [, number, unit] of text.matchAll(/([\d.]+)([KMGTPE]?)i?B/g))
    bytes += Number(number) * 1024 ** units.indexOf(unit!)
  return Math.round(bytes)
}

/** A size in bytes, shown in the largest unit that gives a whole number. */
export const anySize: FieldKind<number> = field<number>({
  expects: 'a size such as "10MB"',
  json: { type: ['string', 'integer', 'null'] },
  parse({ text }) {
    const bytes = parseSize(text)
    if (bytes !== undefined) return Number.isSafeInteger(bytes) ? bytes : { why: 'it is too large' }
    return /^[\d.]+\s*([kmgtp]i?)?b?$/i.test(text)
      ? { why: 'use the units B, KB, MB or GB, in capitals and without a space' }
      : undefined
  },
  show(bytes) {
    let power = 0
    while (power < 6 && bytes !== 0 && bytes % 1024 ** (power + 1) === 0) power++
    return `${bytes / 1024 ** power}${units[power]}B`
  },
})

/** A map whose values are hidden if their names indicate a secret. */
export function guarded<T>(kind: Kind<Readonly<Record<string, T>>>): Kind<Readonly<Record<string, T>>> {
  return {
    ...kind,
    show: (values, hide) =>
      Object.fromEntries(
        Object.entries(values).flatMap(([name, value]) =>
          Object.entries(kind.show({ [name]: value }, soundsSecret(name) ? hideAll : hide) as object),
        ),
      ),
  }
}

/** Labels with their values. Since Prometheus 3 any name is valid. */
export const labels: FieldKind<Readonly<Record<string, string>>> = map(entryText, {
  fault: name => (name === '' ? 'the label has no name; set one or delete it' : ''),
})

/** One of several words, in any case. */
export function oneOf<const V extends string>(names: readonly V[]): FieldKind<V> {
  return field<V>({
    expects: `one of ${names.join(', ')}`,
    json: { type: 'string' },
    parse: ({ text }) => names.find(name => name.toLowerCase() === text.toLowerCase()),
  })
}
