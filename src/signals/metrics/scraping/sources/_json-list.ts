import { Turn } from '../../../../foundation/lib/turn.ts'

const quote = 0x22
const backslash = 0x5c
/** Smaller texts are parsed at once: that takes less than a millisecond. */
const smallBytes = 64 * 1024
/** What may stand around the elements of a list, and between them (RFC 8259, section 2). */
const space = /^[ \t\r\n]*$/
const separator = /^[ \t\r\n]*,[ \t\r\n]*$/
const maxSpace = 4096
/** What is parsed at once: about 100,000 targets. */
const maxElementBytes = 4 * 1024 * 1024
/** Deeper than all lists that are read; the parser takes its time for depth. */
const maxDepth = 100

/**
 * The elements of a list in JSON, parsed one by one with time for others between them. Throws an `Error` in words where
 * this is no list.
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
