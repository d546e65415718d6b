// Stacks as the kernel side reports them, before symbolization.

/** How the stack walk ended: `complete` at the outermost function, otherwise the cause. */
export const stackEnds = [
  'complete',
  /** No executable mapping at the address. */
  'no_mapping',
  /** A file without a table yet. */
  'unknown_file',
  /** Code that its file's table does not cover, without a frame pointer. */
  'no_rule',
  /** Stack memory was not readable. */
  'read_fault',
  /** More frames than the limit. */
  'truncated',
  /** A rule that the kernel side does not support. */
  'unsupported',
  /** The chain of frame pointers left the stack. */
  'frame_pointer_end',
] as const
export type StackEnd = (typeof stackEnds)[number]

/** The meaning of a frame's `space` if it is not a file id. */
export const frameSpace = {
  /** An address in the process: code outside of files, or in a file that has no table yet. */
  address: 0,
  /** CPython: address of a code object; bit 0: the interpreter was entered from C here. */
  cpython: 0xfffd,
  /** V8: address of a SharedFunctionInfo, untagged (the heap object's address, tag bit cleared). */
  v8: 0xfffe,
} as const

/** File ids are 1 to this. */
export const maxFileId = 4095

/** A user-space stack, reported when first seen. */
export interface RawStack {
  /** 53 bits; referenced by the counts. */
  readonly hash: number
  /** The process that it was first seen in (thread group, initial pid namespace), and its thread's name. */
  readonly pid: number
  readonly comm: string
  readonly end: StackEnd
  /** Leaf first: a file id or a `frameSpace`, and the file offset or address. Native and V8 frames. */
  readonly spaces: Uint16Array
  readonly offsets: Float64Array
  /** Frames of an interpreter's own stack (CPython), leaf first, in the same form; usually empty. */
  readonly inner: { readonly spaces: Uint16Array; readonly offsets: Float64Array }
}

/** A file as the kernel identifies it. */
export interface FileIdentity {
  /** `s_dev` (major << 20 | minor). */
  readonly dev: number
  readonly inode: number
  /** Distinguishes a file from a deleted one with the same inode; 0 if the file system has no generations. */
  readonly generation: number
}

/** A file with sampled code that has no table yet. */
export interface UnknownFile extends FileIdentity {
  readonly pid: number
  /** The mapping that it was seen in: addresses, and the mapping's file offset. */
  readonly start: number
  readonly end: number
  readonly offset: number
}

/** A process runs code of a file with a runtime, but has no settings for reading that runtime yet. */
export interface UnknownRuntime {
  readonly pid: number
  readonly file: number
  readonly start: number
  readonly offset: number
}

/**
 * How the kernel side reads a runtime's frames in one process. Offsets are in bytes; 0 if the runtime has no such
 * field.
 */
export interface RuntimeSettings {
  /** V8: offset of JSFunction's shared function info from the object's untagged address. */
  readonly v8Shared?: number
  /** CPython: address of its state, and the layout of the structures in it. */
  readonly python?: PythonSettings
}

export interface PythonSettings {
  /** Address of `_PyRuntime`; since 3.12, of the main interpreter. */
  readonly runtime: number
  /** Offset in it: the address of the thread state that holds, or last held, the interpreter's lock. */
  readonly currentThread: number
  /** Offsets in the thread state: the OS thread id, and the pointer to the innermost frame. */
  readonly nativeThreadId: number
  readonly frameHolder: number
  /** `frameHolder` points to a structure with the frame at this offset; -1: it points to the frame itself. */
  readonly frameInHolder: number
  /** Offsets in a frame: its code object, the previous frame, and the byte that marks an entry from C. */
  readonly code: number
  readonly previous: number
  readonly entry: number
}

/** Receives the sampler's events between counts. The arguments are not reused. */
export interface StackSink {
  userStack(stack: RawStack): void
  /** Leaf first; the low 48 bits of each address. */
  kernelStack(hash: number, addresses: Float64Array): void
  unknownFile(file: UnknownFile): void
  unknownRuntime(runtime: UnknownRuntime): void
}

export type SampleKind = 'cpu' | 'memory' | 'off_cpu'

/** Samples of one stack since the last read. Reused: do not keep it. */
export interface StackCount {
  kind: SampleKind
  pid: number
  comm: string
  userHash: number
  /** 0: it ran in user space, or kernel frames are not recorded. */
  kernelHash: number
  /** Identifies the request that its thread served; 0: none. */
  request: number
  count: number
  /** `cpu`: nanoseconds of CPU time that the samples represent; `memory`: bytes; `off_cpu`: nanoseconds of waiting. */
  value: number
}
