import { Turn } from '../../../../foundation/lib/turn.ts'

const quote = 0x22
const backslash = 0x5c
/** Maximum size parsed in one step, which takes less than a millisecond. */
const smallBytes = 64 * 1024
/** Text around and between the elements of a list (RFC 8259, section 2). */
const space = /^[ \t\r\n]*$/
const separator = /^[ \t\r\n]*,[ \t\r\n]*$/
const maxSpace = 4096
/** Maximum element: about 100,000 targets. */
const maxElementBytes = 4 * 1024 * 1024
/** Deeper than any valid list; deep nesting takes the parser long. */
const maxDepth = 100

/**
 * Elements of a JSON list, parsed one by one, with pauses between them for other work. Throws an `Error` with a reason
 * if it is not a list.
 */
export async function* jsonElements(bytes: Buffer): AsyncIterableIterator<unknown> {
  if (bytes.length <= smallBytes) {
    yield* listOf(parse(bytes, 0, bytes.length))
    return
  }
  const turn = new Turn(1)
  let depth = 0
  let inText = false
  let start = -1
  let after = 0
  let count = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (inText) {
      if (byte === backslash) at++
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    else if (byte === 0x7b || byte === 0x5b) {
      depth++
      if (depth > maxDepth) throw new Error(`it is nested more than ${maxDepth} deep`)
      if (depth === 1) {
        if (byte !== 0x5b || !isBetween(bytes, 0, at, space)) throw new Error('not a list')
        after = at + 1
      } else if (depth === 2) {
        if (!isBetween(bytes, after, at, count++ === 0 ? space : separator))
          throw new Error('an element of the list is not an object')
        start = at
      }
    } else if (byte === 0x7d || byte === 0x5d) {
      depth--
      if (depth === 1 && start >= 0) {
        if (at - start >= maxElementBytes)
          throw new Error(`element ${count} of the list is larger than ${maxElementBytes} bytes; split it`)
        yield parse(bytes, start, at + 1)
        after = at + 1
        start = -1
        const rest = turn.rest()
        if (rest) await rest
      } else if (depth === 0) {
        if (byte !== 0x5d || !isBetween(bytes, after, at, space))
          throw new Error('an element of the list is not an object')
        if (bytes.toString('latin1', at + 1).trim() !== '') throw new Error('text after the end of the list')
        return
      }
    }
  }
  throw new Error('the list is truncated')
}

function isBetween(bytes: Buffer, start: number, end: number, what: RegExp): boolean {
  return end - start <= maxSpace && what.test(bytes.toString('latin1', start, end))
}

function parse(bytes: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end))
  } catch (error) {
    throw new Error(`not JSON: ${(error as Error).message}`, { cause: error })
  }
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('not a list')
  return value
}
