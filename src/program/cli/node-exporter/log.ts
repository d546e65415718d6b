import { createLogger, type Level, type Logger } from '../../../foundation/lib/logger.ts'
import { say } from '../terminal.ts'

/** A logger in the format of the replaced exporter: logfmt or JSON with its key names. */
export function exporterLog(level: Level, format: 'logfmt' | 'json'): Logger {
  const form = format === 'json' ? JSON.stringify : logfmt
  return createLogger({
    level,
    format: 'json',
    write: line => {
      const { timestamp, level: of, ...others } = JSON.parse(line) as Record<string, unknown>
      say(`${form({ time: timestamp, level: String(of).toUpperCase(), ...others })}\n`)
    },
  })
}

function logfmt(record: Readonly<Record<string, unknown>>): string {
  return Object.entries(record)
    .map(([key, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      return `${key}=${/^[^\s"=\\\x00-\x1f\x7f-\x9f]+$/.test(text) ? text : JSON.stringify(text)}`
    })
    .join(' ')
}
