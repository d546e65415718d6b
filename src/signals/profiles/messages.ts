// What the agent's thread and the one that reads files say to each other.

import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import type { FrameType, Mapping } from '../../foundation/model/profile.ts'
import type { RawStack, RuntimeSettings, UnknownRuntime } from '../../foundation/model/raw-stack.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import type { Undecoded } from '../../kernel/decoder.ts'

/** How names are found. */
export interface SymbolSettings {
  readonly demangle: boolean
  readonly perfMap: boolean
  readonly debugDirs: readonly string[]
  /** Bytes of symbol tables that are kept. */
  readonly cacheBytes: number
  /** Where unwind tables are kept from one start to the next; '': nowhere. */
  readonly cacheDir: string
}

/** A file that a process runs code of. */
export interface MappedFile {
  readonly id: number
  readonly pid: number
  /** As the process sees it. */
  readonly path: string
  /** Where it is mapped in that process, and the part of the file that is. */
  readonly start: number
  readonly end: number
  readonly offset: number
  /** As the kernel has them; `dev` is major << 20 | minor. */
  readonly dev: number
  readonly inode: number
  /** Why it was not opened; '' where it was. */
  readonly unread: string
}

export interface KernelStack {
  readonly hash: number
  readonly addresses: Float64Array
}

export type Request =
  /** Make its table. The descriptor is closed when that is done. */
  | { readonly kind: 'file'; readonly file: MappedFile; readonly fd: number }
  /** The id stands for no file any more. */
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'runtime'; readonly runtime: UnknownRuntime }
  | { readonly kind: 'stacks'; readonly user: readonly RawStack[]; readonly kernel: readonly KernelStack[] }
  /** Frames are numbered anew, from 0, in what is answered from now on. */
  | { readonly kind: 'clear'; readonly epoch: number }
  /** Answered when all before is. */
  | { readonly kind: 'mark'; readonly mark: number }
  | { readonly kind: 'settings'; readonly settings: SymbolSettings }
  /** Memory is short: tables of symbols and maps of runtimes go. */
  | { readonly kind: 'shed'; readonly bytes: number }

/** A frame of the model whose mapping is told once, by the id of the file. */
export interface NamedFrame {
  readonly name: string
  readonly systemName: string
  readonly file: string
  readonly line: number
  readonly type: FrameType
  /** -1: none. */
  readonly address: number
  /** Number of its mapping among those that were told; -1: none. */
  readonly mapping: number
}

/** Frames of a stack as indices into all frames that were told in this epoch. */
export interface NamedStack {
  readonly hash: number
  readonly frames: Uint32Array
}

/** What was named at once: new mappings and frames continue the numbers of those before. */
export interface NamedStacks {
  /** Of the last `clear`; 0 before the first. */
  readonly epoch: number
  readonly mappings: readonly Mapping[]
  readonly frames: readonly NamedFrame[]
  readonly user: readonly NamedStack[]
  readonly kernel: readonly NamedStack[]
}

export interface WorkerState {
  readonly files: number
  /** Files whose code has no unwind table, and why: the last ones. */
  readonly withoutTable: readonly { readonly path: string; readonly reason: string }[]
  readonly symbolBytes: number
  readonly frames: number
  /** Frames without a name because whoever brought them has more of them than its share. */
  readonly namesRefused: number
  readonly shares: Readonly<Record<'perf_maps' | 'symbols' | 'runtime_processes', ShareLosses>>
  /** Frames of user space that have a name, and all of them, counted when they were first met. */
  readonly named: number
  readonly seen: number
  readonly cacheHits: number
  /** Questions to processes that kept their memory to themselves, and that were not asked, by why. */
  readonly unread: Readonly<Record<'late' | 'refused' | 'busy' | 'unavailable', number>>
  /** Names of C++ that stay as the linker has them, by why, and why none are written; '' where nothing is wrong. */
  readonly undecoded: Undecoded
  readonly decoderFault: string
}

export type Answer =
  | {
      readonly kind: 'table'
      readonly id: number
      readonly table: UnwindTable | undefined
      readonly runtime: number
    }
  | { readonly kind: 'runtime'; readonly pid: number; readonly settings: RuntimeSettings }
  /** Other code stands where the file's was: its table and names do not hold any more. */
  | { readonly kind: 'replaced'; readonly ids: readonly number[] }
  | (NamedStacks & { readonly kind: 'stacks' })
  | { readonly kind: 'mark'; readonly mark: number; readonly state: WorkerState }
