import type { Attributes } from './attributes.ts'

/** What a frame is code of, as the attribute `profile.frame.type` of the semantic conventions 1.44 has it. */
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

/** A file whose code was seen, and where it lies in its own address space (that of its program headers). */
export interface Mapping {
  readonly path: string
  /** Of the note NT_GNU_BUILD_ID, hexadecimal; '' where there is none. */
  readonly buildId: string
  /** `process.executable.build_id.htlhash`: of the first and last 4 KiB and the length, 32 hexadecimal digits. */
  readonly hash: string
  /** Addresses of its executable segment, and where that stands in the file. */
  readonly start: number
  readonly limit: number
  readonly offset: number
}

/** A frame of a stack. What could not be named says why in `name`, in square brackets, and has line 0. */
export interface Frame {
  readonly name: string
  readonly file: string
  readonly line: number
  /** As the linker knows the function, where that differs from `name`. */
  readonly systemName?: string
  readonly type?: FrameType
  readonly mapping?: Mapping
  /** In the address space of `mapping`; of callers the return address less one. */
  readonly address?: number
}

/** The span that was active in the thread. */
export interface SpanLink {
  /** 16 bytes. */
  readonly traceId: Uint8Array
  /** 8 bytes. */
  readonly spanId: Uint8Array
}

/** Leaf first. One for each that differs in frames, attributes or link. */
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
  /** One sample for so many nanoseconds of CPU time (`cpu`), or bytes (`memory`); left out where none is meant. */
  readonly period?: number
  readonly samples: readonly Sample[]
}
