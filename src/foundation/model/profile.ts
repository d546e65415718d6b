import type { Attributes } from './attributes.ts'

/** Kind of code in a frame: the attribute `profile.frame.type` of the semantic conventions 1.44. */
export type FrameType =
  | 'native'
  | 'kernel'
  | 'go'
  | 'rust'
  | 'cpython'
  | 'v8js'
  | 'jvm'
  | 'ruby'
  | 'php'
  | 'perl'
  | 'dotnet'
  | 'beam'
  | 'luajit'

/** A file with sampled code, and its place in its own address space (that of its program headers). */
export interface Mapping {
  readonly path: string
  /** From the note NT_GNU_BUILD_ID, hexadecimal; '' if there is none. */
  readonly buildId: string
  /** `process.executable.build_id.htlhash`: hash of the first and last 4 KiB and the length, 32 hexadecimal digits. */
  readonly hash: string
  /** Address range of its executable segment, and that segment's file offset. */
  readonly start: number
  readonly limit: number
  readonly offset: number
}

/** A stack frame. If it has no symbol, `name` is the reason in square brackets and `line` is 0. */
export interface Frame {
  readonly name: string
  readonly file: string
  readonly line: number
  /** The linker's name of the function, if it differs from `name`. */
  readonly systemName?: string
  readonly type?: FrameType
  readonly mapping?: Mapping
  /** In the address space of `mapping`; for callers, the return address minus one. */
  readonly address?: number
}

/** The span that was active in the thread. */
export interface SpanLink {
  /** 16 bytes. */
  readonly traceId: Uint8Array
  /** 8 bytes. */
  readonly spanId: Uint8Array
}

/** Frames start with the leaf. Samples differ in frames, attributes or link. */
export interface Sample {
  readonly frames: readonly Frame[]
  readonly value: number
  readonly attributes: Attributes
  readonly link?: SpanLink
}

/** Samples of one kind over one interval. Times are microseconds since the Unix epoch. */
export interface Profile {
  readonly kind: 'cpu' | 'memory' | 'off_cpu'
  /** UCUM-like unit of the values, for example `nanoseconds`, `count`, `bytes`. */
  readonly unit: string
  readonly startUs: number
  readonly durationUs: number
  /**
   * One sample per this many nanoseconds of CPU time (`cpu`) or bytes (`memory`); undefined if not sampled
   * periodically.
   */
  readonly period?: number
  readonly samples: readonly Sample[]
}
