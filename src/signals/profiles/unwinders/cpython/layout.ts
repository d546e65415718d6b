import type { ElfFile } from '../../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../../foundation/lib/elf/elf-format.ts'
import { u64 } from '../../../../foundation/lib/u64.ts'
import { findSymbols } from '../symbol-search.ts'

/** Field offsets in CPython's structures, in bytes. */
export interface PythonLayout {
  /** `_PyRuntimeState`: newest interpreter (`interpreters.head`). */
  readonly interpreters: number
  /** `PyInterpreterState`. */
  readonly nextInterpreter: number
  readonly threads: number
  /** `PyThreadState`. */
  readonly threadInterpreter: number
  readonly nativeThreadId: number
  /** See `PythonSettings`. */
  readonly frameHolder: number
  readonly frameInHolder: number
  /** `_PyInterpreterFrame`. */
  readonly code: number
  readonly previous: number
  /** 3.11: `is_entry`; since 3.12 `owner`: not 0 if C entered here, or in generators. */
  readonly entry: number
  /** Thread that last held the global lock. */
  readonly holder: LockHolder
  /** `PyCodeObject`. */
  readonly qualifiedName: number
  readonly fileName: number
  readonly firstLine: number
  /** Sizes of `PyASCIIObject` and `PyCompactUnicodeObject`, after which the characters start. */
  readonly asciiBytes: number
  readonly compactBytes: number
}

/**
 * 3.11 has the lock in `_PyRuntimeState`: `last`. Since 3.12 each interpreter has one: its address is at `lock`, for
 * the main interpreter that of the structure at `ownLock`; it contains `last`, relative to the interpreter.
 */
export interface LockHolder {
  readonly last: number
  readonly lock?: number
  readonly ownLock?: number
}

/** A CPython file. Addresses are as in the file. */
export interface PythonFile {
  readonly version: string
  readonly layout: PythonLayout
  readonly runtime: number
  readonly codeType: number
  readonly stringType: number
  readonly none: number
}

/** `offsetof` in the headers of 3.11.2 and 3.11.7. */
const layout311: PythonLayout = {
  interpreters: 40,
  nextInterpreter: 0,
  threads: 16,
  threadInterpreter: 16,
  nativeThreadId: 160,
  frameHolder: 56,
  frameInHolder: 8,
  code: 32,
  previous: 48,
  entry: 68,
  holder: { last: 368 },
  qualifiedName: 128,
  fileName: 112,
  firstLine: 72,
  asciiBytes: 48,
  compactBytes: 72,
}

/** From 3.12.1. */
const layout312: PythonLayout = {
  interpreters: 40,
  nextInterpreter: 0,
  threads: 72,
  threadInterpreter: 16,
  nativeThreadId: 144,
  frameHolder: 56,
  frameInHolder: 0,
  code: 0,
  previous: 8,
  entry: 70,
  holder: { lock: 384, ownLock: 1040, last: 1048 },
  qualifiedName: 128,
  fileName: 112,
  firstLine: 68,
  asciiBytes: 40,
  compactBytes: 56,
}

/** Index of each field in `_Py_DebugOffsets` (`pycore_debug_offsets.h`, in 3.13 `pycore_runtime.h`). */
interface DebugWords {
  readonly interpreters: number
  readonly nextInterpreter: number
  readonly threads: number
  readonly lock: number
  readonly ownLock: number
  readonly last: number
  readonly threadInterpreter: number
  readonly frameHolder: number
  readonly nativeThreadId: number
  readonly previous: number
  readonly code: number
  readonly entry: number
  readonly fileName: number
  readonly qualifiedName: number
  readonly firstLine: number
}

const words313: DebugWords = {
  interpreters: 5,
  nextInterpreter: 8,
  threads: 9,
  lock: 14,
  ownLock: 15,
  last: 18,
  threadInterpreter: 22,
  frameHolder: 23,
  nativeThreadId: 25,
  previous: 29,
  code: 30,
  entry: 33,
  fileName: 35,
  qualifiedName: 37,
  firstLine: 39,
}

const words314: DebugWords = {
  interpreters: 5,
  nextInterpreter: 8,
  threads: 9,
  lock: 15,
  ownLock: 16,
  last: 19,
  threadInterpreter: 25,
  frameHolder: 26,
  nativeThreadId: 28,
  previous: 32,
  code: 33,
  entry: 36,
  fileName: 40,
  qualifiedName: 42,
  firstLine: 44,
}

const debugCookie = 'xdebugpy'
const debugBytes = 45 * 8
const versionWord = 1
const freeThreadedWord = 2
/** Maximum offset in `_PyRuntimeState` and `PyInterpreterState`, which contain many other structures. */
const mostOffset = 16 * 1024 * 1024
const finalRelease = 15

/** Undefined if the file is not CPython; a reason if this version is not supported. */
export function readPythonFile(elf: ElfFile): PythonFile | string | undefined {
  const runtime = findSymbols(elf, '_PyRuntime').get('_PyRuntime')
  // A program whose runtime is in a library may have an empty symbol of that name.
  if (runtime === undefined || runtime.size === 0) return undefined
  const addressOf = (name: string) => findSymbols(elf, name).get(name)?.address
  const versionAt = addressOf('Py_Version')
  if (versionAt === undefined) return 'CPython 3.10 and older is not supported'
  const hex = wordOf(elf, versionAt)
  const version = `${hex >>> 24}.${(hex >>> 16) & 255}`
  if (((hex >>> 4) & 15) !== finalRelease) return `pre-releases of CPython ${version} are not supported`
  const layout = layoutOf(elf, version, hex, runtime.address)
  if (typeof layout === 'string') return layout
  const [codeType, stringType, none] = ['PyCode_Type', 'PyUnicode_Type', '_Py_NoneStruct'].map(addressOf)
  if (codeType === undefined || stringType === undefined)
    return `this build of CPython ${version} has no symbols for its types`
  return { version, layout, runtime: runtime.address, codeType, stringType, none: none ?? 0 }
}

function layoutOf(elf: ElfFile, version: string, hex: number, runtime: number): PythonLayout | string {
  switch (version) {
    case '3.11':
      return layout311
    case '3.12':
      return layout312
    case '3.13':
      return describedLayout(elf, version, hex, runtime, words313)
    case '3.14':
      return describedLayout(elf, version, hex, runtime, words314)
    default:
      return `CPython ${version} is not supported`
  }
}

/** Since 3.13 the runtime starts with a description of itself. */
function describedLayout(
  elf: ElfFile,
  version: string,
  hex: number,
  runtime: number,
  words: DebugWords,
): PythonLayout | string {
  const offset = elf.offsetOf(runtime)
  if (offset === undefined) return `this build of CPython ${version} has no debug offsets`
  const bytes = elf.read(offset, debugBytes)
  const isDescribed = bytes.toString('latin1', 0, 8) === debugCookie && u64(bytes, versionWord * 8) === hex
  if (!isDescribed) return `this build of CPython ${version} has no debug offsets`
  if (u64(bytes, freeThreadedWord * 8) !== 0) return `free-threaded CPython ${version} is not supported`
  const values: Partial<Record<keyof DebugWords, number>> = {}
  for (const [name, word] of Object.entries(words)) {
    const value = u64(bytes, word * 8)
    if (value > mostOffset)
      return `this build of CPython ${version} has an invalid debug offset: ${name} at ${value}`
    values[name as keyof DebugWords] = value
  }
  const { lock, ownLock, last, ...offsets } = values as Record<keyof DebugWords, number>
  return { ...offsets, holder: { lock, ownLock, last }, frameInHolder: -1, asciiBytes: 40, compactBytes: 56 }
}

function wordOf(elf: ElfFile, address: number): number {
  const offset = elf.offsetOf(address)
  if (offset === undefined) throw new ElfError('symbol Py_Version is not in any segment')
  return elf.read(offset, 4).readUInt32LE()
}
