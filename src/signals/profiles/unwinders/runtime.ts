import type { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import type { Frame, FrameType } from '../../../foundation/model/profile.ts'
import type { RuntimeSettings } from '../../../foundation/model/raw-stack.ts'
import type { ProcessMemory } from '../../../kernel/process-memory.ts'

/** A language runtime whose frames are found and named without its help: what each unit of this folder is. */
export interface RuntimeUnit {
  readonly name: 'v8' | 'cpython'
  /** One sentence. */
  readonly summary: string
  readonly frameType: FrameType
  /** What the kernel side calls it (`runtime` of `struct svc_unwind_file`). */
  readonly code: 1 | 2
  /**
   * Looks at a file once. Undefined where it is not this runtime; a text where it is, and this version cannot read it:
   * why. Throws `ElfError` for a broken file.
   */
  recognise(elf: ElfFile, path: string): RuntimeFile | string | undefined
  /** Puts an interpreter's own frames in the place of its C functions. Leaf first; `entries` are those of `inner`. */
  merge?(native: readonly Frame[], inner: readonly Frame[], entries: readonly boolean[]): Frame[]
}

/** A file of the runtime: its layout is known. */
export interface RuntimeFile {
  /**
   * `bias`: what is added to the file's addresses in that process. A text where it cannot be read, and why; `notStarted`
   * for what is worth asking for again.
   */
  attach(memory: ProcessMemory, bias: number): RuntimeProcess | string
}

export interface RuntimeProcess {
  /** How the kernel side finds frames. */
  readonly settings: RuntimeSettings
  /**
   * The frame of a pointer that the kernel side told. What cannot be named says why in square brackets. Names are kept,
   * within bounds, and looked at again when they are asked for later: a garbage collector moves things.
   */
  name(pointer: number): Frame
  /** These pointers are named next: what that takes is read at once rather than one after the other. */
  expect(pointers: readonly number[]): void
  /** Memory is short: what was named is read again. */
  forgetNames(): void
}

/** The runtime of a process has not made its first thread yet. */
export const notStarted = 'the runtime has not started yet'

/** Frames that are kept per process. */
export const maxFramesKept = 4096

/** So long a name is good without a look: stacks come in heaps, and a look costs some readings for each frame. */
export const goodForMs = 250
