import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Frame } from '../../../foundation/model/profile.ts'
import type { RuntimeSettings } from '../../../foundation/model/raw-stack.ts'
import type { ProcessMemory } from '../../../kernel/process-memory.ts'
import { goodForMs, maxFramesKept, type RuntimeProcess, type RuntimeUnit } from './runtime.ts'
import { readConstants, type V8Constants } from './v8/constants.ts'
import { taggedAt, V8Heap } from './v8/heap.ts'
import { readScopeInfo } from './v8/scope-info.ts'
import { ScriptLines } from './v8/script-lines.ts'

const frameType = 'v8js'

/** Node.js and other programs with V8, by V8's metadata for debuggers: the programs need no options. */
export const v8: RuntimeUnit = {
  name: 'v8',
  summary: 'JavaScript of Node.js and other programs with V8, interpreted and compiled.',
  frameType,
  code: 1,
  recognise(elf: ElfFile) {
    const constants = readConstants(elf)
    if (constants === undefined || typeof constants === 'string') return constants
    return { attach: memory => new V8Process(memory, constants) }
  },
}

const gone: Frame = {
  name: '[JavaScript: function moved or freed before it could be named]',
  file: '',
  line: 0,
  type: frameType,
}

/** Covers most objects that are read. */
const expectedObjectBytes = 64

/** As in V8's own profiles. */
const anonymous = '(anonymous)'

/** Field after the name; Smi: lines before the script's first (`Script::line_offset`). */
const lineOffsetAfterName = 8

/** Memory of a known frame, without its name. */
const frameBytes = 200

interface Known {
  readonly frame: Frame
  /** Objects that the function referred to when it was named. */
  readonly name: number
  readonly script: number
  /** Time of the last check, by `performance.now`. */
  seenMs: number
}

class V8Process implements RuntimeProcess {
  readonly settings: RuntimeSettings
  readonly #heap: V8Heap
  readonly #lines: ScriptLines
  /** Size of a SharedFunctionInfo up to the last field that is read. */
  readonly #sharedBytes: number
  readonly #known = small(
    new BoundedMap<number, Known>(maxFramesKept, undefined, (_, { frame }) => frameBytes + frame.name.length),
  )
  /** Shares one string among all functions of a file. */
  readonly #files = small(new BoundedMap<string, string>(maxFramesKept))

  constructor(memory: ProcessMemory, constants: V8Constants) {
    this.settings = { v8Shared: constants.functionShared }
    this.#heap = new V8Heap(memory, constants)
    this.#lines = new ScriptLines(memory)
    this.#sharedBytes = Math.max(constants.sharedName, constants.sharedScript) + 8
  }

  forgetNames(): void {
    this.#known.clear()
    this.#files.clear()
  }

  /** `pointer`: an untagged SharedFunctionInfo. */
  name(pointer: number): Frame {
    const known = this.#known.get(pointer)
    const nowMs = performance.now()
    if (known !== undefined && nowMs - known.seenMs < goodForMs) return known.frame
    const { sharedName, sharedScript, sharedType } = this.#heap.constants
    const isFunction = pointer % 8 === 0 && this.#heap.typeOf(pointer) === sharedType
    const words = isFunction ? this.#heap.memory.read(pointer, this.#sharedBytes) : undefined
    if (words === undefined) return known?.frame ?? gone
    const name = taggedAt(words, sharedName)
    const script = taggedAt(words, sharedScript)
    if (known?.name === name && known.script === script) {
      known.seenMs = nowMs
      return known.frame
    }
    const found = this.#frameOf(name, script)
    if (found === undefined) return known?.frame ?? gone
    const frame = this.#sameOr(known?.frame, found)
    this.#known.set(pointer, { frame, name, script, seenMs: nowMs })
    return frame
  }

  expect(pointers: readonly number[]): void {
    const nowMs = performance.now()
    const { memory } = this.#heap
    const functions = pointers.filter(
      pointer => !(nowMs - (this.#known.get(pointer)?.seenMs ?? -goodForMs) < goodForMs),
    )
    memory.expect(functions, this.#sharedBytes)
    const next: number[] = []
    for (const pointer of functions) {
      const words = this.#known.get(pointer) ? undefined : memory.read(pointer, this.#sharedBytes)
      if (words === undefined) continue
      const { sharedName, sharedScript } = this.#heap.constants
      next.push(taggedAt(words, 0), taggedAt(words, sharedName), taggedAt(words, sharedScript))
    }
    memory.expect(next, expectedObjectBytes)
  }

  /** Undefined if a referenced object has changed. */
  #frameOf(nameOrScope: number, scriptOrNone: number): Frame | undefined {
    const { scopeInfoType, scriptType } = this.#heap.constants
    const isScope = nameOrScope !== 0 && this.#heap.typeOf(nameOrScope) === scopeInfoType
    const scope = isScope ? readScopeInfo(this.#heap, nameOrScope) : undefined
    const name = isScope ? scope?.name : nameOrScope === 0 ? '' : this.#heap.text(nameOrScope)
    if (name === undefined) return undefined
    const script = scriptOrNone !== 0 && this.#heap.typeOf(scriptOrNone) === scriptType ? scriptOrNone : 0
    return {
      name: name || anonymous,
      file: script === 0 ? '' : this.#fileOf(script),
      line: script === 0 ? 0 : this.#lineOf(script, scope?.start ?? -1),
      type: frameType,
    }
  }

  #fileOf(script: number): string {
    const name = this.#heap.field(script, this.#heap.constants.scriptName)
    const file = pathOf((name === 0 ? undefined : this.#heap.text(name)) ?? '')
    const known = this.#files.get(file)
    if (known === undefined) this.#files.set(file, file)
    return known ?? file
  }

  /** One-based; 0: unknown. */
  #lineOf(script: number, start: number): number {
    if (start < 0) return 0
    const { scriptName, scriptSource } = this.#heap.constants
    const source = this.#heap.characters(this.#heap.field(script, scriptSource))
    const line = source && this.#lines.line(source, start)
    const offset = this.#heap.integer(script, scriptName + lineOffsetAfterName) ?? 0
    return line === undefined ? 0 : Math.max(0, line + offset + 1)
  }

  /** V8 frees code that did not run recently, and with it the function's position. */
  #sameOr(before: Frame | undefined, now: Frame): Frame {
    const isSame = before?.name === now.name && before.file === now.file
    return isSame && (now.line === 0 || now.line === before.line) ? before : now
  }
}

/** ECMAScript modules have URLs as names. */
function pathOf(name: string): string {
  if (!name.startsWith('file:///')) return name
  try {
    return decodeURIComponent(name.slice('file://'.length))
  } catch {
    return name.slice('file://'.length) // invalid percent-encoding
  }
}
