import type { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import type { Frame, FrameType } from '../../../foundation/model/profile.ts'
import type { RuntimeSettings } from '../../../foundation/model/raw-stack.ts'
import type { ProcessMemory } from '../../../kernel/process-memory.ts'

/**
 * A language runtime whose frames are found and named without its cooperation; the contract of each unit in this
 * folder.
 */
export interface RuntimeUnit {
  readonly name: 'v8' | 'cpython'
  /** One sentence. */
  readonly summary: string
  readonly frameType: FrameType
  /** Number on the kernel side (`runtime` in `struct svc_unwind_file`). */
  readonly code: 1 | 2
  /**
   * Checks a file once. Undefined: not this runtime; a text: why this version is not supported. Throws `ElfError` for a
   * broken file.
   */
  recognise(elf: ElfFile, path: string): RuntimeFile | string | undefined
  /** Replaces an interpreter's C functions by its own frames. Leaf first; `entries` is parallel to `inner`. */
  merge?(native: readonly Frame[], inner: readonly Frame[], entries: readonly boolean[]): Frame[]
}

/** A supported file of the runtime. */
export interface RuntimeFile {
  /**
   * `bias`: offset from the file's addresses to those in the process. A text: why it cannot be read; `notStarted` if a
   * retry may succeed.
   */
  attach(memory: ProcessMemory, bias: number): RuntimeProcess | string
}

export interface RuntimeProcess {
  /** How the kernel side finds frames. */
  readonly settings: RuntimeSettings
  /**
   * Frame of a pointer from the kernel side. A frame without a name has a reason in square brackets. Names are cached
   * within limits, and checked again at later calls, as garbage collectors move objects.
   */
  name(pointer: number): Frame
  /** Announces the next pointers, whose data is then read in one batch. */
  expect(pointers: readonly number[]): void
  /** Drops cached names to free memory. */
  forgetNames(): void
}

/** The runtime of a process has not created its first thread yet. */
export const notStarted = 'the runtime has not started yet'

/** Maximum cached frames per process. */
export const maxFramesKept = 4096

/**
 * Time for which a name is valid without a check: stacks arrive in batches, and a check takes several reads per frame.
 */
export const goodForMs = 250
