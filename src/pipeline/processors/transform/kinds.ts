import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import type { Kind } from '../../../foundation/schema/tree.ts'
import { describe, isBroken, secretsIn } from '../../../foundation/schema/value.ts'
import { parseSeverity, severityName } from './severity.ts'
import { patternIn } from './value-test.ts'

/** A text, or a regular expression between slashes. Numbers and booleans count as text. */
export const textOrRegex: Kind<string> = {
  expects: 'text, or a regular expression between slashes',
  json: { type: ['string', 'number', 'boolean'] },
  read(value, key, report) {
    if (isBroken(value)) return undefined
    if (value.type !== 'scalar' || value.value === null) {
      const found = describe(value, report.secret)
      report.problem(value.place, key, `expected ${textOrRegex.expects}, found ${found}`)
      return undefined
    }
    const text = String(value.value)
    const fault = regexFault(patternIn(text))
    if (fault === '') {
      if (secretsIn(value).length > 0) report.hide?.(text)
      return text
    }
    const found = describe(value, report.secret)
    report.problem(
      value.place,
      key,
      `expected a regular expression between the slashes, found ${found}: ${fault}`,
    )
    return undefined
  },
  show: (value, hide) => hide(value),
}

function regexFault(source: string | undefined): string {
  if (source === undefined) return ''
  if (source.length > 4096) return 'it has more than 4096 characters'
  try {
    linearRegExp(source)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

/** An OTLP SeverityNumber, by number or name; empty means 0, for none. */
export const severity: Kind<number> = {
  expects: 'a severity such as "warn" or "error2", or a number from 1 to 24',
  json: { type: ['string', 'integer'] },
  read(value, key, report) {
    if (isBroken(value)) return undefined
    const text = value.type === 'scalar' && value.value !== null ? value.text : undefined
    const parsed = text === '' ? 0 : text === undefined ? undefined : parseSeverity(text)
    if (parsed !== undefined) return parsed
    const hint = text?.toLowerCase() === 'warning' && !report.secret ? '; write "warn"' : ''
    const found = describe(value, report.secret)
    report.problem(value.place, key, `expected ${severity.expects}, found ${found}${hint}`)
    return undefined
  },
  show: (value, hide) => hide(severityName(value).toLowerCase()),
}
