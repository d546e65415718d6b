/**
 * Names, values and signs that a text of YAML may have: a parser takes some hundred times the size of each, and a fault
 * in each takes more. Thousands of targets have a tenth.
 */
export const mostTokens = 200_000
export const tooManyTokens = 'it has more than 200,000 YAML tokens'

/** Whether the tokens of a lexer of YAML are more than a parser is to see. Takes no memory, and time for so many at most. */
export function isTooMuch(tokens: Iterable<string>): boolean {
  let left = mostTokens
  for (const token of tokens) {
    // Each escape may be a fault of its own.
    left -= token.startsWith('"') ? token.split('\\', left + 1).length : 1
    if (left < 0) return true
  }
  return false
}

/** What a parser answers whose faults are errors by the thousand: their stacks take most of its time and memory. */
export function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return parse()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
