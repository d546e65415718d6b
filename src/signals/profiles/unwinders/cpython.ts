import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Frame } from '../../../foundation/model/profile.ts'
import type { PythonSettings, RuntimeSettings } from '../../../foundation/model/raw-stack.ts'
import { type ProcessMemory, pointerAt } from '../../../kernel/process-memory.ts'
import { type PythonFile, type PythonLayout, readPythonFile } from './cpython/layout.ts'
import { mergeFrames, shim } from './cpython/merge.ts'
import { readString } from './cpython/string.ts'
import { goodForMs, maxFramesKept, notStarted, type RuntimeProcess, type RuntimeUnit } from './runtime.ts'

const frameType = 'cpython'

/** CPython 3.11 to 3.14, by the layout of its structures: the programs need no options. */
export const cpython: RuntimeUnit = {
  name: 'cpython',
  summary: 'Python of CPython 3.11 to 3.14.',
  frameType,
  code: 2,
  recognise(elf) {
    const file = readPythonFile(elf)
    if (file === undefined || typeof file === 'string') return file
    return { attach: (memory, bias) => attach(memory, bias, file) }
  },
  merge: mergeFrames,
}

const gone: Frame = {
  name: '[Python: code freed before it could be named]',
  file: '',
  line: 0,
  type: frameType,
}

/** In `PyObject`. */
const objectType = 8
const mostInterpreters = 256
/** Covers most names and paths, with their headers. */
const expectedTextBytes = 128
/** Code name of shims in 3.12; later versions have `None`. */
const shimName = '<interpreter trampoline>'
/** Name of the code that waits for a constructor in 3.13 and later; name and file are the same string. */
const constructorName = '__init__'

function attach(memory: ProcessMemory, bias: number, file: PythonFile): RuntimeProcess | string {
  const { layout, version } = file
  const runtime = file.runtime + bias
  const main = mainInterpreter(memory, runtime, layout)
  if (main === 0) return notStarted
  const thread = memory.pointer(main + layout.threads)
  if (thread === 0) return notStarted
  const { lock, ownLock, last } = layout.holder
  const isKnown =
    memory.pointer(thread + layout.threadInterpreter) === main &&
    (lock === undefined || ownLock === undefined || memory.pointer(main + lock) === main + ownLock)
  if (!isKnown) return `this build of CPython ${version} has an unknown layout`
  const python: PythonSettings = {
    runtime: lock === undefined ? runtime : main,
    currentThread: last,
    nativeThreadId: layout.nativeThreadId,
    frameHolder: layout.frameHolder,
    frameInHolder: layout.frameInHolder,
    code: layout.code,
    previous: layout.previous,
    entry: layout.entry,
  }
  return new PythonProcess(memory, bias, file, { python })
}

/** The oldest interpreter, as new ones are prepended. 0: none yet. */
function mainInterpreter(memory: ProcessMemory, runtime: number, layout: PythonLayout): number {
  let interpreter = memory.pointer(runtime + layout.interpreters)
  for (let count = 0; count < mostInterpreters; count++) {
    const next = interpreter === 0 ? 0 : memory.pointer(interpreter + layout.nextInterpreter)
    if (next === 0) break
    interpreter = next
  }
  return interpreter
}

/** Memory of a known frame, without its name. */
const frameBytes = 200

interface Known {
  readonly frame: Frame
  /** Objects that the code referred to when it was named. */
  readonly name: number
  readonly file: number
  readonly line: number
  /** Time of the last check, by `performance.now`. */
  seenMs: number
}

class PythonProcess implements RuntimeProcess {
  readonly settings: RuntimeSettings
  readonly #memory: ProcessMemory
  readonly #layout: PythonLayout
  /** Size of a code object up to the last field that is read. */
  readonly #codeBytes: number
  readonly #codeType: number
  readonly #stringType: number
  readonly #none: number
  readonly #known = small(
    new BoundedMap<number, Known>(maxFramesKept, undefined, (_, { frame }) => frameBytes + frame.name.length),
  )
  /** Shares one string among all functions of a file. */
  readonly #files = small(new BoundedMap<string, string>(maxFramesKept))

  constructor(memory: ProcessMemory, bias: number, file: PythonFile, settings: RuntimeSettings) {
    this.#memory = memory
    this.settings = settings
    this.#layout = file.layout
    const { qualifiedName, fileName, firstLine } = file.layout
    this.#codeBytes = Math.max(qualifiedName, fileName, firstLine) + 8
    this.#codeType = file.codeType + bias
    this.#stringType = file.stringType + bias
    this.#none = file.none === 0 ? 0 : file.none + bias
  }

  forgetNames(): void {
    this.#known.clear()
    this.#files.clear()
  }

  /** `pointer`: a code object; its lowest bits are flags. */
  name(pointer: number): Frame {
    const code = pointer - (pointer % 8)
    if (code !== 0 && code === this.#none) return shim
    const known = this.#known.get(code)
    const nowMs = performance.now()
    if (known !== undefined && nowMs - known.seenMs < goodForMs) return known.frame
    const { qualifiedName, fileName, firstLine } = this.#layout
    const words = this.#memory.read(code, this.#codeBytes)
    if (words === undefined || pointerAt(words, objectType) !== this.#codeType) return known?.frame ?? gone
    const name = pointerAt(words, qualifiedName)
    const file = pointerAt(words, fileName)
    const line = words.readInt32LE(firstLine)
    if (known?.name === name && known.file === file && known.line === line) {
      known.seenMs = nowMs
      return known.frame
    }
    const frame = this.#frameOf(name, file, line)
    if (frame !== gone) this.#known.set(code, { frame, name, file, line, seenMs: nowMs })
    return frame
  }

  expect(pointers: readonly number[]): void {
    const nowMs = performance.now()
    const codes = pointers
      .map(pointer => pointer - (pointer % 8))
      .filter(
        code => code !== this.#none && !(nowMs - (this.#known.get(code)?.seenMs ?? -goodForMs) < goodForMs),
      )
    this.#memory.expect(codes, this.#codeBytes)
    const texts: number[] = []
    for (const code of codes) {
      const words = this.#memory.read(code, this.#codeBytes)
      if (words === undefined || this.#known.get(code) !== undefined) continue
      texts.push(pointerAt(words, this.#layout.qualifiedName), pointerAt(words, this.#layout.fileName))
    }
    this.#memory.expect(texts, expectedTextBytes)
  }

  #frameOf(nameAt: number, fileAt: number, line: number): Frame {
    const name = this.#text(nameAt)
    if (name === shimName || (nameAt === fileAt && name === constructorName)) return shim
    const file = this.#text(fileAt)
    if (name === undefined || file === undefined) return gone
    const shared = this.#files.get(file)
    if (shared === undefined) this.#files.set(file, file)
    return { name, file: shared ?? file, line: Math.max(0, line), type: frameType }
  }

  #text(object: number): string | undefined {
    return readString(this.#memory, object, this.#stringType, this.#layout)
  }
}
