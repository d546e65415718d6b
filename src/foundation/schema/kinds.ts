import { formatDuration, parseDuration } from '../lib/duration.ts'
import { endpointFault, hasCredentials } from '../lib/endpoint.ts'
import { linearRegExp } from '../lib/linear-regexp.ts'
import { parseListenAddress } from '../lib/listen-address.ts'
import { formatSize, parseSize } from '../lib/size.ts'
import type { NamedFile } from './problem.ts'
import type { Kind } from './tree.ts'
import { describe, isBroken, type Scalar, secretsIn, type Value } from './value.ts'

/** A file may contain a reference even if the type is not text. */
const reference = { $ref: '#/$defs/reference' }

interface ScalarKind<T> {
  readonly expects: string
  readonly json: Readonly<Record<string, unknown>>
  parse(scalar: Scalar): T | undefined
  /** The correct form of a nearly valid value. */
  hint?(scalar: Scalar): string | undefined
  show?(value: T): string | number | boolean
  missing?(value: T): string | undefined
  /** Why a value is not allowed here because it contains a secret; must not repeat the value. */
  leak?(text: string): string | undefined
}

function scalarKind<T>(own: ScalarKind<T>): Kind<T> {
  return {
    expects: own.expects,
    json: own.json,
    read(value, key, report) {
      if (isBroken(value)) return undefined
      const leak = value.type === 'scalar' ? own.leak?.(value.text) : undefined
      if (leak !== undefined) {
        report.problem(value.place, key, leak, true)
        return undefined
      }
      const parsed = value.type === 'scalar' && value.value !== null ? own.parse(value) : undefined
      if (parsed !== undefined) {
        if (secretsIn(value).length > 0) report.hide?.(String(own.show ? own.show(parsed) : parsed))
        return parsed
      }
      if (value.type === 'scalar' && value.value === null) {
        report.problem(
          value.place,
          key,
          `expected ${own.expects}, found nothing; delete the key to use its default`,
        )
        return undefined
      }
      const shown = !report.secret && value.type === 'scalar' && value.secrets.length === 0
      const hint = shown ? own.hint?.(value) : undefined
      const message = `expected ${own.expects}, found ${describe(value, report.secret)}`
      report.problem(value.place, key, hint === undefined ? message : `${message}; write ${hint}`)
      return undefined
    },
    show: (value, hide) => hide(own.show ? own.show(value) : (value as string | number | boolean)),
    ...(own.missing ? { missing: own.missing } : {}),
  }
}

function quoted({ value, text }: Scalar): string | undefined {
  return typeof value === 'string' || text === '' ? undefined : JSON.stringify(text)
}

/** A number, from YAML or from a variable's text. */
function numberOf({ value, text, loose }: Scalar): number | undefined {
  if (typeof value === 'number') return value
  if (!loose || text.length > 32 || !/^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text.trim()))
    return undefined
  return Number(text)
}

export const boolean: Kind<boolean> = scalarKind({
  expects: 'true or false',
  json: { anyOf: [{ type: 'boolean' }, reference] },
  parse({ value, text, loose }) {
    if (typeof value === 'boolean') return value
    return loose && (text === 'true' || text === 'false') ? text === 'true' : undefined
  },
  hint({ text }) {
    const word = text.toLowerCase()
    if (['true', 'yes', 'on', 'y', '1'].includes(word)) return 'true'
    return ['false', 'no', 'off', 'n', '0'].includes(word) ? 'false' : undefined
  },
})

interface TextOptions {
  /** Ends the sentence "expected …". */
  readonly expects?: string
  /** Must match as a whole; matched in linear time. */
  readonly pattern?: RegExp
  readonly valid?: (text: string) => boolean
  readonly show?: (text: string) => string
  /** The correct form of a nearly valid value. */
  readonly hint?: (scalar: Scalar) => string | undefined
  readonly leak?: (text: string) => string | undefined
}

/** Text, whole and untrimmed. */
export function text(options: TextOptions = {}): Kind<string> {
  const { pattern, valid } = options
  return scalarKind({
    expects: options.expects ?? 'text',
    json: pattern
      ? { type: 'string', anyOf: [{ pattern: pattern.source }, { pattern: '[$][{]' }] }
      : { type: 'string' },
    parse({ value, text, loose }) {
      if ((typeof value !== 'string' && !loose) || text.includes('\0')) return undefined
      return (pattern && !pattern.test(text)) || (valid && !valid(text)) ? undefined : text
    },
    hint: options.hint ?? quoted,
    ...(options.show ? { show: options.show } : {}),
    ...(options.leak ? { leak: options.leak } : {}),
  })
}

/** Text that is not empty. */
export const someText = text({ expects: 'text that is not empty', pattern: /./s })

/** Path of a file or directory; empty for none. */
export const path = text({ expects: 'a path' })

/** The same kind, for the path of a file that must exist; empty for none. */
export function fileThat<K extends Kind<string>>(holds: NamedFile['expects'], kind: K): K {
  return {
    ...kind,
    read(value, key, report) {
      const named = kind.read(value, key, report)
      if (named !== undefined && named !== '')
        report.file?.({
          path: named,
          expects: holds,
          key,
          place: value.place,
          secret: report.secret || secretsIn(value).length > 0,
        })
      return named
    },
  }
}

/** Path of a PEM file of certificates; empty for none. */
export const certificatesFile = fileThat('certificates', path)

/** Path of a PEM file of a private key; empty for none. */
export const keyFile = fileThat('private key', path)

/** A regular expression in RE2 syntax, kept as its source. */
export const regex: Kind<string> = scalarKind({
  expects: 'a regular expression',
  json: { type: 'string', format: 'regex' },
  parse: ({ value, text }) => (typeof value === 'string' && regexFault(text) === '' ? text : undefined),
  hint: scalar =>
    typeof scalar.value === 'string' ? `one that compiles (${regexFault(scalar.text)})` : quoted(scalar),
})

/** Why a text is no regular expression; '' if it is one. */
function regexFault(source: string): string {
  if (source.length > 4096) return 'at most 4096 characters'
  try {
    linearRegExp(source)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

/** A plain name, or a regular expression between slashes. */
export const nameOrRegex: Kind<string> = scalarKind({
  expects: 'a name, or a regular expression between slashes',
  json: { type: 'string' },
  parse({ value, text }) {
    if (typeof value !== 'string' || text === '') return undefined
    return /^\/.+\/$/s.test(text) && regexFault(text.slice(1, -1)) !== '' ? undefined : text
  },
  hint: quoted,
})

interface Range {
  readonly min: number
  readonly max: number
}

export function integer(range: Range): Kind<number> {
  const { min, max } = range
  const bounded = max < Number.MAX_SAFE_INTEGER
  return scalarKind({
    expects: bounded ? `a whole number from ${min} to ${max}` : `a whole number, ${min} or more`,
    json: {
      anyOf: [{ type: 'integer', minimum: min, ...(bounded ? { maximum: max } : {}) }, reference],
    },
    parse(scalar) {
      const value = numberOf(scalar)
      return Number.isSafeInteger(value) && value! >= min && value! <= max ? value : undefined
    },
    hint: unquoted(value => Number.isSafeInteger(value) && value >= min && value <= max),
  })
}

/** A whole number, 0 or more. */
export const count = integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

export const port = integer({ min: 1, max: 65_535 })

export function number(range: Range): Kind<number> {
  const { min, max } = range
  return scalarKind({
    expects: `a number from ${min} to ${max}`,
    json: { anyOf: [{ type: 'number', minimum: min, maximum: max }, reference] },
    parse(scalar) {
      const value = numberOf(scalar)
      return value !== undefined && value >= min && value <= max ? value : undefined
    },
    hint: unquoted(value => value >= min && value <= max),
  })
}

/** The hint for a number in quotes. */
function unquoted(valid: (value: number) => boolean) {
  return ({ value, text }: Scalar): string | undefined => {
    if (typeof value !== 'string' || text.trim() === '' || text.length > 32) return undefined
    return valid(Number(text)) ? Number(text).toString() : undefined
  }
}

const day = 86_400_000

/** A duration in milliseconds. Default `min` is 1 ms, default `max` 24 days (the longest timer). */
export function duration(range: Partial<Range> = {}): Kind<number> {
  const { min = 1, max = 24 * day } = range
  const bounds = min > 1 ? ` from ${formatDuration(min)} to ${formatDuration(max)}` : ''
  return scalarKind({
    expects: `a duration such as "30s"${bounds}`,
    json: {
      anyOf: [{ type: 'string', pattern: '^(0|([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h|d))+)$' }, reference],
    },
    parse({ value, text }) {
      const ms = value === 0 ? 0 : typeof value === 'string' ? parseDuration(text.trim()) : undefined
      return ms !== undefined && ms >= min && ms <= max ? ms : undefined
    },
    hint({ value, text }) {
      const bare = Number(text)
      if (text.trim() !== '' && bare * 1000 >= min && bare * 1000 <= max) return `"${bare}s" or "${bare}ms"`
      const ms = typeof value === 'string' ? parseDuration(text.trim()) : bare
      if (ms === undefined || Number.isNaN(ms)) return undefined
      return ms < min ? `at least "${formatDuration(min)}"` : `at most "${formatDuration(max)}"`
    },
    show: formatDuration,
  })
}

interface SizeOptions extends Range {
  readonly powerOfTwo?: boolean
  /** Shown as a plain number, as the key's specification requires. */
  readonly plain?: boolean
}

/** A size in bytes. */
export function size(options: SizeOptions): Kind<number> {
  const { min, max, powerOfTwo, plain } = options
  const what = powerOfTwo ? 'a size that is a power of two' : 'a size such as "32Mi"'
  return scalarKind({
    expects: `${what} from ${formatSize(min)} to ${formatSize(max)}`,
    json: {
      anyOf: [
        { type: 'integer', minimum: min, maximum: max },
        { type: 'string', pattern: '^[0-9]+(\\.[0-9]+)? ?([kKmMgGtTpP]i?)?[bB]?$' },
        reference,
      ],
    },
    parse({ value, text }) {
      const bytes =
        typeof value === 'number' ? value : typeof value === 'string' ? parseSize(text.trim()) : undefined
      if (bytes === undefined || !Number.isSafeInteger(bytes) || bytes < min || bytes > max) return undefined
      return powerOfTwo && (bytes & (bytes - 1)) !== 0 ? undefined : bytes
    },
    hint({ text }) {
      const bytes = parseSize(text.trim())
      if (bytes === undefined || !powerOfTwo || bytes < min || bytes > max) return undefined
      return String(2 ** Math.round(Math.log2(bytes)))
    },
    show: bytes => (plain ? bytes : formatSize(bytes)),
  })
}

/** One of a few words. `built` lists those that are implemented; default: all. */
export function choice<const V extends string>(values: readonly V[], built: readonly V[] = values): Kind<V> {
  const expects = values.map(value => JSON.stringify(value)).join(values.length > 2 ? ', ' : ' or ')
  return scalarKind<V>({
    expects: values.length > 2 ? `one of ${expects}` : expects,
    json: { enum: [...values] },
    parse({ text }) {
      return (values as readonly string[]).includes(text) ? (text as V) : undefined
    },
    hint({ text }) {
      const lower = text.toLowerCase().trim()
      const meant = values.find(value => value === lower || value.startsWith(`${lower}/`))
      if (meant !== undefined && lower !== '') return JSON.stringify(meant)
      return lower === 'warning' && (values as readonly string[]).includes('warn') ? '"warn"' : undefined
    },
    missing: value => (built.includes(value) ? undefined : value),
  })
}

/** Text, number or boolean, kept as written. */
export const scalar: Kind<string | number | boolean> = scalarKind({
  expects: 'text, a number, true or false',
  json: { type: ['string', 'number', 'boolean'] },
  parse: ({ value }) => value ?? undefined,
})

/** A listen address: `:19090`, `127.0.0.1:19090` or `[::1]:19090`. Port 0 selects any free port. */
export const listenAddress = text({
  expects: 'text like ":19090" or "127.0.0.1:19090"',
  valid: address => parseListenAddress(address) !== undefined,
  hint: ({ text }) => (parseListenAddress(`:${text}`) ? `":${text}"` : undefined),
})

/** An OTLP endpoint: `host:port`, or a URL whose scheme determines TLS. Empty for none. */
export const endpoint = text({
  expects: 'host:port or a URL such as "https://collector:4317"',
  valid: address => address === '' || endpointFault(address) === '',
  leak: address => {
    if (hasCredentials(address))
      return 'contains a user name or password, which would show up in logs; delete it, and set otlp.headers if the receiver needs credentials'
    return /[?#]/.test(address)
      ? 'contains a query, which would show up in logs; delete it, and set otlp.headers if the receiver needs a token'
      : undefined
  },
})

/** An http or https URL; empty for none. */
export const url = text({
  expects: 'an http or https URL',
  valid: isUrl,
  leak: address =>
    address.includes('@') && !isUrl(address)
      ? 'expected an http or https URL, found a value that may contain a password (not shown)'
      : undefined,
  show: address => address.replace(/^([a-z]+:\/\/)[^/@]*@/i, '$1[REDACTED]@'),
})

function isUrl(address: string): boolean {
  return address === '' || (/^https?:\/\//i.test(address) && URL.canParse(address))
}

/** Ports and ranges of ports, such as `8080`, `"8000-8999"` or `"80,443"`. */
export const openPorts: Kind<readonly { readonly from: number; readonly to: number }[]> = {
  expects: 'ports such as 8080, "8000-8999" or "80,443"',
  json: { type: ['integer', 'string', 'array'], items: { type: ['integer', 'string'] } },
  read(value, key, report) {
    const ranges: { from: number; to: number }[] = []
    const read = (part: Value): boolean =>
      part.type === 'list'
        ? part.items.every(item => item.type === 'scalar' && read(item))
        : part.type === 'scalar' &&
          part.value !== null &&
          part.text.split(',').every(range => readRange(range, ranges))
    if (isBroken(value)) return undefined
    if (read(value)) {
      if (secretsIn(value).length > 0) report.hide?.(String(openPorts.show(ranges, shown => shown)))
      return ranges
    }
    report.problem(value.place, key, `expected ${openPorts.expects}, found ${describe(value, report.secret)}`)
    return undefined
  },
  show: (ranges, hide) =>
    hide(ranges.map(({ from, to }) => (from === to ? from : `${from}-${to}`)).join(',')),
}

function readRange(part: string, into: { from: number; to: number }[]): boolean {
  const match = /^\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?$/.exec(part)
  if (!match) return false
  const from = Number(match[1])
  const to = Number(match[2] ?? match[1])
  into.push({ from, to })
  return from >= 1 && from <= to && to <= 65_535
}

/** A value of another kind, or `auto`: svc derives it from the host. */
export function orAuto<T>(kind: Kind<T>): Kind<T | 'auto'> {
  return {
    expects: `"auto" or ${kind.expects}`,
    json: { anyOf: [{ const: 'auto' }, kind.json] },
    read: (value, key, report) =>
      value.type === 'scalar' && value.text.trim() === 'auto' ? 'auto' : kind.read(value, key, report),
    show: (value, hide) => (value === 'auto' ? hide('auto') : kind.show(value, hide)),
  }
}
