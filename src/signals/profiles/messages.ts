// Messages between the agent's thread and the thread that reads files.

import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import type { FrameType, Mapping } from '../../foundation/model/profile.ts'
import type { RawStack, RuntimeSettings, UnknownRuntime } from '../../foundation/model/raw-stack.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import type { Undecoded } from '../../kernel/decoder.ts'

/** Settings of symbol lookups. */
export interface SymbolSettings {
  readonly demangle: boolean
  readonly perfMap: boolean
  readonly debugDirs: readonly string[]
  /** Maximum bytes of cached symbol tables. */
  readonly cacheBytes: number
  /** Directory that keeps unwind tables across restarts; '': none. */
  readonly cacheDir: string
}

/** A file with code executed by a process. */
export interface MappedFile {
  readonly id: number
  readonly pid: number
  /** As seen by the process. */
  readonly path: string
  /** Its address range in that process, and the mapped part of the file. */
  readonly start: number
  readonly end: number
  readonly offset: number
  /** As in the kernel; `dev` is major << 20 | minor. */
  readonly dev: number
  readonly inode: number
  /** Why it was not opened; '' if it was. */
  readonly unread: string
}

export interface KernelStack {
  readonly hash: number
  readonly addresses: Float64Array
}

export type Request =
  /** Build its table, then close the descriptor. */
  | { readonly kind: 'file'; readonly file: MappedFile; readonly fd: number }
  /** The id becomes invalid. */
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'runtime'; readonly runtime: UnknownRuntime }
  | { readonly kind: 'stacks'; readonly user: readonly RawStack[]; readonly kernel: readonly KernelStack[] }
  /** Frame numbers start again from 0 in all later answers. */
  | { readonly kind: 'clear'; readonly epoch: number }
  /** Answered after all previous requests. */
  | { readonly kind: 'mark'; readonly mark: number }
  | { readonly kind: 'settings'; readonly settings: SymbolSettings }
  /** Free memory: drop symbol tables and runtime maps. */
  | { readonly kind: 'shed'; readonly bytes: number }

/** A frame of the model; its mapping is sent once. */
export interface NamedFrame {
  readonly name: string
  readonly systemName: string
  readonly file: string
  readonly line: number
  readonly type: FrameType
  /** -1: none. */
  readonly address: number
  /** Number of its mapping among those sent; -1: none. */
  readonly mapping: number
}

/** Frames of a stack as indices into all frames sent in this epoch. */
export interface NamedStack {
  readonly hash: number
  readonly frames: Uint32Array
}

/** Result of one request: numbers of new mappings and frames continue the previous ones. */
export interface NamedStacks {
  /** Epoch of the last `clear`; 0 before the first. */
  readonly epoch: number
  readonly mappings: readonly Mapping[]
  readonly frames: readonly NamedFrame[]
  readonly user: readonly NamedStack[]
  readonly kernel: readonly NamedStack[]
}

export interface WorkerState {
  readonly files: number
  /** Most recent files without an unwind table, with reasons. */
  readonly withoutTable: readonly { readonly path: string; readonly reason: string }[]
  readonly symbolBytes: number
  readonly frames: number
  /** Frames without a name because their owner exceeded its share. */
  readonly namesRefused: number
  readonly shares: Readonly<Record<'perf_maps' | 'symbols' | 'runtime_processes', ShareLosses>>
  /** User space frames with a name, and all of them, counted at their first report. */
  readonly named: number
  readonly seen: number
  readonly cacheHits: number
  /** Failed or skipped reads of process memory, by reason. */
  readonly unread: Readonly<Record<'late' | 'refused' | 'busy' | 'unavailable', number>>
  /** C++ names that stay mangled, by reason, and why none are decoded; '' if there is no fault. */
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
  /** The file's content was replaced: its table and names are invalid. */
  | { readonly kind: 'replaced'; readonly ids: readonly number[] }
  | (NamedStacks & { readonly kind: 'stacks' })
  | { readonly kind: 'mark'; readonly mark: number; readonly state: WorkerState }
