import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import type { AttributeValue } from '../../../foundation/model/attributes.ts'

/** Regular expression between the slashes of a text; undefined for plain text. */
export function patternIn(wanted: string): string | undefined {
  return /^\/.+\/$/s.test(wanted) ? wanted.slice(1, -1) : undefined
}

/** Test for one exact text, or for a match of a regular expression between slashes. */
export function textTest(wanted: string): (text: string) => boolean {
  const source = patternIn(wanted)
  if (source === undefined) return text => text === wanted
  const pattern = new SearchPattern(source)
  return text => pattern.test(text)
}

/** Test whether any of several tests succeeds. */
export function anyTest(wanted: readonly string[]): (text: string) => boolean {
  const tests = wanted.map(textTest)
  return text => {
    for (let i = 0; i < tests.length; i++) if (tests[i]!(text)) return true
    return false
  }
}

/**
 * Test of an attribute's value; undefined means no attribute. `*` matches any value. Numbers and booleans are matched
 * as text, and a list matches if one of its texts does.
 */
export function valueTest(wanted: string): (value: AttributeValue | undefined) => boolean {
  if (wanted === '*') return value => value !== undefined
  const test = textTest(wanted)
  const number = Number(wanted)
  const isExact = patternIn(wanted) === undefined
  // Comparing numbers avoids converting each one to text.
  const isNumber = isExact && String(number) === wanted
  return value => {
    if (typeof value === 'string') return test(value)
    if (typeof value === 'number') {
      if (isExact) return isNumber && (value === number || (Number.isNaN(value) && Number.isNaN(number)))
      return test(String(value))
    }
    if (typeof value === 'boolean') return test(value ? 'true' : 'false')
    if (value === undefined) return false
    for (let i = 0; i < value.length; i++) if (test(value[i]!)) return true
    return false
  }
}
