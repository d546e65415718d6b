import { lineAndColumn, type Place } from './value.ts'

/** A problem in the configuration, with the place to fix it. */
export interface Problem {
  /** The file as given, or the name of a variable or flag. */
  readonly where: string
  /** From 1; 0 for a variable, a flag, or a file as a whole. Columns count UTF-16 units. */
  readonly line: number
  readonly column: number
  /** The key as written; '' if there is none. */
  readonly key: string
  readonly message: string
  /** The line of the file; '' if there is none or it contains a secret. */
  readonly sourceLine: string
  /** Number of affected characters from `column`. */
  readonly length: number
}

/** A file named by a setting. */
export interface NamedFile {
  /** As written, not empty. */
  readonly path: string
  /** Expected content; `any` if svc reads it unparsed. */
  readonly expects: 'certificates' | 'private key' | 'any'
  /** The key as written. */
  readonly key: string
  readonly place: Place
  /** Part of the path is secret. */
  readonly secret: boolean
}

/** Receives problems while a value is read. */
export interface Report {
  /** The key is secret: messages must not repeat the value. */
  readonly secret: boolean
  /** Receives a value from a secret file as it would be shown: split and typed it may look different. */
  readonly hide?: (shown: string) => void
  /** Receives a file that a key names and that must exist. */
  readonly file?: (named: NamedFile) => void
  problem(place: Place, key: string, message: string, secret?: boolean): void
}

/** The value after a key that sounds secret, even if there is no such key. */
const secretValue = /((?:password|secret|token|credential|authorization|api_?key|salt|headers)["']?\s*:\s).+/i

/**
 * A possible address without its scheme, with credentials in front. Does not match up to the "@", which takes quadratic
 * time on a long line.
 */
const authority = /[^\s"'/]+/g

export function problemAt(place: Place, key: string, message: string, secret = false): Problem {
  const [line, column] = lineAndColumn(place.source, place.start)
  const start = place.start - column + 1
  const end = place.source.text.indexOf('\n', start)
  const text = line === 0 || secret ? '' : place.source.text.slice(start, end < 0 ? undefined : end)
  const sourceLine = text
    .replace(/\r$/, '')
    .replace(secretValue, '$1[REDACTED]')
    // The same length, so that the mark below stays in place.
    .replace(authority, found => {
      const end = found.lastIndexOf('@')
      return end < 1 ? found : '*'.repeat(end) + found.slice(end)
    })
  const length = Math.max(1, Math.min(place.end - place.start, sourceLine.length - column + 1))
  return { where: place.source.name, line, column, key, message, sourceLine, length }
}

/** A problem without a place in the text, such as an unreadable file. */
export function problemWith(where: string, message: string): Problem {
  return { where, line: 0, column: 0, key: '', message, sourceLine: '', length: 0 }
}

/** Collects problems in a list, at most `limit`: a foreign file can have one in every line. */
export function reportInto(problems: Problem[], secret = false, limit = 100): Report {
  return {
    secret,
    problem(place, key, message, hidden = secret) {
      if (problems.length < limit) problems.push(problemAt(place, key, message, hidden))
    },
  }
}

/** The same report for a secret key. */
export function hiding(report: Report, secret: boolean): Report {
  if (!secret || report.secret) return report
  return {
    ...report,
    secret: true,
    problem: (place, key, message) => report.problem(place, key, message, true),
  }
}

interface FormatOptions {
  /** Also shows the line of the file with the place marked, for people. */
  readonly terminal?: boolean
  readonly color?: boolean
}

/** Formats problems, one line each: `FILE:LINE:COLUMN: key: message`. */
export function formatProblems(problems: readonly Problem[], options: FormatOptions = {}): string {
  const paint = (code: number, text: string) => (options.color ? `\x1b[${code}m${text}\x1b[0m` : text)
  const lines: string[] = []
  for (const problem of problems) {
    const at = problem.line > 0 ? `${problem.where}:${problem.line}:${problem.column}` : problem.where
    const what = problem.key === '' ? problem.message : `${problem.key}: ${problem.message}`
    lines.push(`${paint(1, `${printable(at)}:`)} ${printable(what)}`)
    if (!options.terminal || problem.sourceLine === '') continue
    // For a very long line, the part around the place.
    const from = Math.max(0, problem.column - 80)
    const shown = problem.sourceLine.slice(from, from + 160)
    const before = shown.slice(0, problem.column - 1 - from).replace(/[^\t]/g, ' ')
    const length = Math.max(1, Math.min(problem.length, shown.length - before.length))
    lines.push(`${String(problem.line).padStart(5)} | ${printable(shown)}`)
    lines.push(`      | ${before}${paint(31, '^'.repeat(length))}`)
  }
  return lines.map(line => `${line}\n`).join('')
}

/** Removes characters that could control a terminal. */
function printable(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}
