// Redacts everything that leaves this host: known secrets, and text that looks like one.

const mark = '[REDACTED]'

/** Shorter secrets are not replaced: their letters occur everywhere, and they are easy to guess anyway. */
const shortest = 4

/** Replaces secrets by `[REDACTED]`. Every call takes linear time. */
export interface Scrub {
  text(text: string): string
  /** Keeps JSON valid; other input is treated as text. */
  json(text: string): string
  /** JSON, one value on each line. */
  lines(text: string): string
  /** Whether binary content contains a known secret. */
  finds(bytes: Buffer): boolean
  /** Length of the longest known secret, in UTF-16 units. */
  readonly longest: number
}

/** `secrets` are the known ones; their JSON, base64 and URL encodings are found too. */
export function scrubFor(secrets: Iterable<string>): Scrub {
  const known = writtenForms(secrets)
  const text = (whole: string): string => {
    let result = whole
    for (const secret of known) if (result.includes(secret)) result = result.split(secret).join(mark)
    for (const [shape, shown] of shapes) result = result.replace(shape, shown)
    return result
  }
  const deep = (value: unknown, hidden = false): unknown => {
    if (typeof value === 'string') return hidden && value !== '' ? mark : text(value)
    if (typeof value === 'number') return known.some(secret => String(value).includes(secret)) ? mark : value
    if (Array.isArray(value)) return value.map(part => deep(part, hidden))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [text(name), deep(part, hides(name))]),
    )
  }
  const json = (whole: string, indent?: number): string | undefined => {
    try {
      return JSON.stringify(deep(JSON.parse(whole)), null, indent)
    } catch {
      return undefined // cut off, or not JSON
    }
  }
  const lines = (whole: string): string => {
    const parts: string[] = []
    let other: string[] = []
    // Consecutive other lines are redacted together, because a key has many lines.
    const endOther = () => {
      if (other.length > 0) parts.push(text(other.join('\n')))
      other = []
    }
    for (const line of whole.split('\n')) {
      const clean = json(line)
      if (clean === undefined) other.push(line)
      else {
        endOther()
        parts.push(clean)
      }
    }
    endOther()
    return parts.join('\n')
  }
  return {
    text,
    json: whole => `${json(whole, 2) ?? text(whole)}\n`,
    lines,
    finds: bytes => known.some(secret => bytes.includes(secret)),
    longest: Math.max(0, ...known.map(secret => secret.length)),
  }
}

/** Each secret in all its encodings, longest first, because one may be part of another. */
function writtenForms(secrets: Iterable<string>): string[] {
  const plain = new Set<string>()
  for (const secret of secrets) {
    plain.add(secret)
    for (const line of secret.split(/\r?\n/)) plain.add(line.trim())
    // Of a header, the credentials without their scheme.
    const credentials = /^\s*[\w-]{1,32}\s+(\S+)\s*$/.exec(secret)?.[1]
    if (credentials === undefined) continue
    plain.add(credentials)
    const password = /^[^:]*:(.+)$/s.exec(Buffer.from(credentials, 'base64').toString())?.[1]
    if (password !== undefined && /^Basic\s/i.test(secret.trim())) plain.add(password)
  }
  const forms = new Set<string>()
  for (const secret of plain) {
    if (secret.length < shortest) continue
    const base64 = Buffer.from(secret).toString('base64')
    for (const form of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      base64,
      base64.replace(/=+$/, ''),
      Buffer.from(secret).toString('base64url'),
    ])
      forms.add(form)
  }
  return [...forms].sort((a, b) => b.length - a.length)
}

const words =
  'pass(?:word|wd|phrase)|secret(?:[_-]?access)?(?:[_-]?key)?|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|client[_-]?secret'

/** JSON names whose values are always hidden. */
const secretName = new RegExp(`(?:^|[^a-z])(?:${words}|authorization|cookie|salt)s?$`, 'i')

/** Also matches camel case: `accessToken`. */
function hides(name: string): boolean {
  return secretName.test(name.replace(/([a-z\d])([A-Z])/g, '$1_$2'))
}

const name = String.raw`(?:${words})s?\\?["']?\s{0,8}`
/** Not replaced: a reference such as `${file:/path}` is no secret, and is useful. */
const kept = String.raw`(?!\$\{|\[REDACTED\])`

/**
 * Text that looks like a secret. All patterns take linear time: repetitions are bounded, or can only start where no
 * match precedes.
 */
const shapes: readonly [RegExp, string][] = [
  // Including one that is cut off.
  [/-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g, mark],
  [
    /\b((?:proxy-authorization|authorization|cookie)\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)(?!\[REDACTED\])[^"'\\\r\n]+/gi,
    `$1${mark}`,
  ],
  // Does not match the words "bearer token".
  [/\b(Bearer\s{1,8})(?!tokens?\b)[\w.~+/-]{4,}=*/gi, `$1${mark}`],
  [/(?<![\w-])eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*)?/g, mark],
  [/([a-z][a-z0-9+.-]{0,30}:\/\/)(?!\[REDACTED\])[^\s/?#"'<>\\]{1,512}@/gi, `$1${mark}@`],
  // `name=value`, `name:value`, `name: "value"`.
  [
    new RegExp(
      String.raw`(${name}(?:=\s{0,8}\\?["']?|:\s{0,8}\\?["']|:(?=[^\s"'])))${kept}` +
        String.raw`(?:(?<=["'])[^"'\\\r\n]+|[^\s"',;&{}()[\]\\]+)`,
      'gi',
    ),
    `$1${mark}`,
  ],
  // `name: value`, unless more words make it a sentence.
  [
    new RegExp(
      String.raw`(${name}:\s{1,8})${kept}[^\s"',;&{}()[\]\\]{1,1024}(?=[ \t]{0,8}(?:$|[\r\n"',;&{}()[\]\\]))`,
      'gi',
    ),
    `$1${mark}`,
  ],
]
