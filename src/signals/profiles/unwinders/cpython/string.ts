import { u64 } from '../../../../foundation/lib/u64.ts'
import { type ProcessMemory, pointerAt } from '../../../../kernel/process-memory.ts'
import type { PythonLayout } from './layout.ts'

const mostCharacters = 1024

/** `PyASCIIObject` in CPython's `unicodeobject.h`; these fields are the same from 3.11 to 3.14. */
const typeOffset = 8
const lengthOffset = 16
const stateOffset = 32
const headBytes = 40

/** `state`: 2 bits `interned` (16 in builds of 3.14), 3 bits bytes per character, 1 bit compact, 1 bit ASCII. */
interface State {
  readonly width: number
  readonly isCompact: boolean
  readonly isAscii: boolean
}

/** A `str`, cut after 1,024 characters; undefined if it is not one, or unreadable. */
export function readString(
  memory: ProcessMemory,
  object: number,
  stringType: number,
  layout: PythonLayout,
): string | undefined {
  const head = memory.read(object, headBytes)
  if (head === undefined || pointerAt(head, typeOffset) !== stringType) return undefined
  const { width, isCompact, isAscii } = stateOf(head.readUInt32LE(stateOffset))
  const length = u64(head, lengthOffset)
  // The compiler creates only such names.
  if (!isCompact || ![1, 2, 4].includes(width)) return undefined
  if (length === 0) return ''
  const start = object + (isAscii ? layout.asciiBytes : layout.compactBytes)
  const bytes = memory.read(start, Math.min(length, mostCharacters) * width)
  if (bytes === undefined) return undefined
  if (width === 1) return bytes.toString('latin1')
  return width === 2 ? bytes.toString('utf16le') : fromCodePoints(bytes)
}

function stateOf(word: number): State {
  // A width of 0 is invalid: these bits are then part of the wider `interned`.
  const bits = (word & 0xfffc) === 0 ? word >>> 16 : word >>> 2
  return { width: bits & 7, isCompact: (bits & 8) !== 0, isAscii: (bits & 16) !== 0 }
}

function fromCodePoints(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 4) {
    const code = bytes.readUInt32LE(at)
    text += String.fromCodePoint(code <= 0x10ffff ? code : 0xfffd)
  }
  return text
}
