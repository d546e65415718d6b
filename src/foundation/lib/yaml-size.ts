/**
 * Maximum tokens of a YAML text: a parser takes some hundred times the size of each, and more for a fault in each.
 * Thousands of targets have a tenth of that.
 */
const mostTokens = 200_000
export const tooManyTokens = 'it has more than 200,000 YAML tokens'

/** True if a YAML lexer returns more tokens than the parser may see. Takes no memory, and stops at the limit. */
export function isTooMuch(tokens: Iterable<string>): boolean {
  let left = mostTokens
  for (const token of tokens) {
    // Each escape may be a separate fault.
    left -= token.startsWith('"') ? token.split('\\', left + 1).length : 1
    if (left < 0) return true
  }
  return false
}

/** Runs a parser without error stacks: with thousands of faults, stacks take most of its time and memory. */
export function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return parse()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
