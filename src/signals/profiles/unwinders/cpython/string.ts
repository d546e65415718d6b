import { u64 } from '../../../../foundation/lib/u64.ts'
import { type ProcessMemory, pointerAt } from '../../../../kernel/process-memory.ts'
import type { PythonLayout } from './layout.ts'

const mostCharacters = 1024

/** `PyASCIIObject` of CPython's `unicodeobject.h`, the same from 3.11 to 3.14 up to here. */
const typeOffset = 8
const lengthOffset = 16
const stateOffset = 32
const headBytes = 40

/** `state`: `interned` of 2 bits (16 in builds of 3.14), 3 bits of bytes per character, 1 compact, 1 ASCII. */
interface State {
  readonly width: number
  readonly isCompact: boolean
  readonly isAscii: boolean
}

/** A `str`, cut off after 1,024 characters; undefined where it is none, or could not be read. */
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
  // Names of code are made by the compiler, which makes no other ones.
  if (!isCompact || ![1, 2, 4].includes(width)) return undefined
  if (length === 0) return ''
  const start = object + (isAscii ? layout.asciiBytes : layout.compactBytes)
  const bytes = memory.read(start, Math.min(length, mostCharacters) * width)
  if (bytes === undefined) return undefined
  if (width === 1) return bytes.toString('latin1')
  return width === 2 ? bytes.toString('utf16le') : fromCodePoints(bytes)
}

function stateOf(word: number): State {
  // A width of 0 does not exist: then these bits are those of the wider `interned`.
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
