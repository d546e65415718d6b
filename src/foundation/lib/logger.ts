// Log lines as JSON, or as text for people.

import { causesOf } from './error-code.ts'
import type { LogRing } from './log-ring.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof levels)[number]

export type LogFormat = 'json' | 'text'

/** Details of a record, besides its sentence. An error is written as its message and those of its causes. */
export type Fields = Readonly<Record<string, unknown>>

/** Settings that may change at run time. */
export interface LogSettings {
  /** Lowest level that is written. */
  readonly level: Level
  readonly format: LogFormat
}

export interface Logger {
  /** Takes effect with the next record. Omitted settings stay unchanged. */
  configure(settings: Partial<LogSettings>): void
  /** True if a record of this level would be written: check before computing expensive fields. */
  enabled(level: Level): boolean
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
  /** Output that a user requested: written at any level, as `info`. */
  answer(message: string, fields?: Fields): void
}

export interface LoggerOptions extends LogSettings {
  /** Colours for the text form. */
  readonly color?: boolean
  /** Receives one whole line, including its end. */
  readonly write: (line: string) => void
  /** Stores the written records, as JSON whatever the format. */
  readonly ring?: LogRing
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number
}

/** Makes a logger. A record below the level costs one comparison. */
export function createLogger(options: LoggerOptions): Logger {
  const { write, ring, now = Date.now } = options
  const asText = options.color ? colourLine : textLine
  let { format } = options
  let least = levels.indexOf(options.level)
  const put = (level: Level, message: string, fields?: Fields) => {
    const at = now()
    const json = format === 'json' || ring ? jsonLine(at, level, message, fields) : ''
    ring?.add(json)
    write(format === 'json' ? json : asText(at, level, message, fields))
  }
  const writer = (level: Level) => {
    const rank = levels.indexOf(level)
    return (message: string, fields?: Fields) => {
      if (rank >= least) put(level, message, fields)
    }
  }
  return {
    configure(settings) {
      if (settings.level !== undefined) least = levels.indexOf(settings.level)
      format = settings.format ?? format
    },
    enabled: level => levels.indexOf(level) >= least,
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    answer: (message, fields) => put('info', message, fields),
  }
}

/**
 * Writes the first of equal records and suppresses repetitions for `intervalMs`; the next one written has the number of
 * suppressed ones in its field `repeated`. `key` identifies the kind of record; 256 kinds are remembered.
 */
export function limitRepeats(log: Logger, intervalMs: number, now: () => number = Date.now) {
  const seen = new Map<string, { at: number; held: number }>()
  return (level: Level, key: string, message: string, fields?: Fields): void => {
    if (!log.enabled(level)) return
    const last = seen.get(key)
    const at = now()
    if (last && at - last.at < intervalMs) {
      last.held++
      return
    }
    if (!last && seen.size >= 256) seen.delete(seen.keys().next().value!)
    seen.set(key, { at, held: 0 })
    log[level](message, last?.held ? { ...fields, repeated: last.held } : fields)
  }
}

const reserved = new Set(['timestamp', 'level', 'msg'])

function jsonLine(at: number, level: Level, message: string, fields?: Fields): string {
  let line = `{"timestamp":"${new Date(at).toISOString()}","level":"${level}","msg":${JSON.stringify(message)}`
  if (fields) {
    for (const key of Object.keys(fields)) {
      const value = jsonValue(fields[key])
      if (value !== undefined) line += `,${JSON.stringify(reserved.has(key) ? `${key}_` : key)}:${value}`
    }
  }
  return `${line}}\n`
}

function jsonValue(value: unknown): string | undefined {
  if (value instanceof Error) return JSON.stringify(errorText(value))
  try {
    return JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
  } catch {
    // A cycle: an imperfect record is better than an agent that fails in its log.
    return JSON.stringify(String(value))
  }
}

function textLine(at: number, level: Level, message: string, fields?: Fields): string {
  return `${new Date(at).toISOString()} ${level.toUpperCase().padEnd(5)} ${visible(message)}${textFields(fields)}\n`
}

const colours: Record<Level, number> = { debug: 90, info: 32, warn: 33, error: 31 }

function colourLine(at: number, level: Level, message: string, fields?: Fields): string {
  const time = new Date(at).toISOString()
  const name = level.toUpperCase().padEnd(5)
  return `\x1b[90m${time}\x1b[0m \x1b[${colours[level]}m${name}\x1b[0m ${visible(message)}\x1b[90m${textFields(fields)}\x1b[0m\n`
}

function textFields(fields?: Fields): string {
  if (!fields) return ''
  let text = ''
  for (const key of Object.keys(fields)) {
    const value = fields[key]
    const plain = value instanceof Error ? errorText(value) : value
    const bare = typeof plain === 'string' && /^[^\s"=\x00-\x1f\x7f-\x9f]+$/.test(plain)
    const shown = bare ? plain : jsonValue(plain)
    if (shown !== undefined) text += ` ${key}=${visible(shown)}`
  }
  return text
}

/** Escapes control characters: a name from the host must not move a reader's cursor or start a new line. */
function visible(text: string): string {
  return text.replace(
    /[\x00-\x1f\x7f-\x9f]/g,
    character => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** The messages of an error and its causes, joined by `: `. */
export function errorText(error: unknown): string {
  const parts: string[] = []
  for (const part of causesOf(error)) {
    const text = part instanceof Error ? part.message : String(part)
    if (!parts.some(before => before.includes(text))) parts.push(text)
  }
  return parts.join(': ')
}
