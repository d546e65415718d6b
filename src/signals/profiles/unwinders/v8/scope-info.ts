import { integerAt, taggedAt, type V8Heap } from './heap.ts'

/** Data of a function's ScopeInfo. */
export interface ScopeInfo {
  /** '': none. */
  readonly name: string
  /** Position of its first character in the script's source; -1: unknown. */
  readonly start: number
}

/** `ScopeFlags` in V8's `scope-info.tq`, the same from version 8.7 to 14. */
const savedClassVariable = 1 << 10
const functionVariable = 3 << 12
const inferredName = 1 << 14

const wordBytes = 8
/** After the map. */
const firstWord = 8
const localsWord = 2
const mostLocals = 65_536
/** From this number on, variable names are in a separate table (`kScopeInfoMaxInlinedLocalNamesSize`). */
const inlinedLocals = 75

/**
 * Reads a ScopeInfo (`scope-info.tq` of V8): a header, the names of context variables, a word for each, then fields
 * selected by the flags. Undefined if it is invalid or unreadable.
 */
export function readScopeInfo(heap: V8Heap, object: number): ScopeInfo | undefined {
  const { scopeHeaderWords } = heap.constants
  const header = heap.memory.read(object + firstWord, scopeHeaderWords * wordBytes)
  const locals = integerAt(header, localsWord * wordBytes)
  if (header === undefined || locals === undefined || locals < 0 || locals > mostLocals) return undefined
  const flags = flagsAt(header)
  const hasPositions = scopeHeaderWords >= 5
  const headerStart = hasPositions ? positionAt(header, (scopeHeaderWords - 2) * wordBytes) : -1
  const names = locals < inlinedLocals ? locals : 1
  let at = object + firstWord + (scopeHeaderWords + names + locals) * wordBytes
  if (flags & savedClassVariable) at += wordBytes
  const ownWords = flags & functionVariable ? 2 : 0
  const inferredWords = flags & inferredName ? 1 : 0
  const positionWords = hasPositions ? 0 : 2
  const words = ownWords + inferredWords + positionWords
  if (words === 0) return { name: '', start: headerStart }
  const tail = heap.memory.read(at, words * wordBytes)
  if (tail === undefined) return undefined
  const own = ownWords ? taggedAt(tail, 0) : 0
  const inferred = inferredWords ? taggedAt(tail, ownWords * wordBytes) : 0
  const positionBytes = (ownWords + inferredWords) * wordBytes
  const start = hasPositions ? headerStart : positionAt(tail, positionBytes)
  const ownName = own === 0 ? '' : heap.text(own)
  if (ownName === undefined) return undefined
  // An inferred name may be `undefined`.
  const name = ownName || (inferred === 0 ? '' : (heap.text(inferred) ?? ''))
  return { name, start: start < 0 && !hasPositions ? moduleStart(heap, at + positionBytes) : start }
}

/** In V8 12, all of this is a word later for modules, which start with their variable count. */
function moduleStart(heap: V8Heap, address: number): number {
  const words = heap.memory.read(address + wordBytes, 2 * wordBytes)
  return words === undefined ? -1 : positionAt(words, 0)
}

/** A raw word since V8 12, previously a Smi. */
function flagsAt(header: Buffer): number {
  return header.readUInt32LE(0) || header.readUInt32LE(4)
}

function positionAt(words: Buffer, at: number): number {
  const start = integerAt(words, at)
  const end = integerAt(words, at + wordBytes)
  return start !== undefined && end !== undefined && start >= 0 && end >= start ? start : -1
}
