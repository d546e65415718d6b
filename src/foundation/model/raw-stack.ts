// What the kernel side tells of stacks, before anything has a name.

/** How the walk up a stack ended: `complete` at its outermost function, else why not. */
export const stackEnds = [
  'complete',
  /** No mapping that may be executed at the address. */
  'no_mapping',
  /** A file whose table is not made yet. */
  'unknown_file',
  /** Code that its file's table does not cover, and no frame pointer. */
  'no_rule',
  /** Memory of the stack could not be read. */
  'read_fault',
  /** More frames than are kept. */
  'truncated',
  /** A rule that the kernel side cannot follow. */
  'unsupported',
  /** The chain of frame pointers left the stack. */
  'frame_pointer_end',
] as const
export type StackEnd = (typeof stackEnds)[number]

/** What a frame's number counts, where it is no file's id. */
export const frameSpace = {
  /** An address of the process: code that no file holds, or a file that has no table yet. */
  address: 0,
  /** CPython: address of a code object; bit 0: a C function of the interpreter entered here. */
  cpython: 0xfffd,
  /** V8: address of a SharedFunctionInfo, untagged (the heap object's address, tag bit cleared). */
  v8: 0xfffe,
} as const

/** Ids of files are 1 to this. */
export const maxFileId = 4095

/** A stack of user space, told when it is first seen. */
export interface RawStack {
  /** 53 bits: names it in the counts. */
  readonly hash: number
  /** The process it was first seen in (thread group, initial pid namespace), and its thread's name. */
  readonly pid: number
  readonly comm: string
  readonly end: StackEnd
  /** Leaf first: a file's id or a `frameSpace`, and the offset in that file or the address. Native and V8 frames. */
  readonly spaces: Uint16Array
  readonly offsets: Float64Array
  /** Frames of an interpreter's own stack (CPython), leaf first, in the same form; empty for most. */
  readonly inner: { readonly spaces: Uint16Array; readonly offsets: Float64Array }
}

/** A file as the kernel has it. */
export interface FileIdentity {
  /** `s_dev` (major << 20 | minor). */
  readonly dev: number
  readonly inode: number
  /** Tells a file from a deleted one whose inode it was given; 0 where the file system counts none. */
  readonly generation: number
}

/** A file of which code was met that has no table yet. */
export interface UnknownFile extends FileIdentity {
  readonly pid: number
  /** The mapping it was met in: addresses, and where it begins in the file. */
  readonly start: number
  readonly end: number
  readonly offset: number
}

/** A process runs code of a file with a runtime, and nothing is known of how to read that process. */
export interface UnknownRuntime {
  readonly pid: number
  readonly file: number
  readonly start: number
  readonly offset: number
}

/** How the kernel side reads a runtime's frames in one process. Offsets are in bytes; 0 for what a runtime has not. */
export interface RuntimeSettings {
  /** V8: of JSFunction's shared function info, from the object's untagged address. */
  readonly v8Shared?: number
  /** CPython: where its state is, and the layout of what hangs on it. */
  readonly python?: PythonSettings
}

export interface PythonSettings {
  /** Address of `_PyRuntime`, since 3.12 that of the main interpreter. */
  readonly runtime: number
  /** In it: the address of the thread state that has, or had last, the interpreter's lock. */
  readonly currentThread: number
  /** In the thread state: the system's id of the thread, and where the innermost frame hangs. */
  readonly nativeThreadId: number
  readonly frameHolder: number
  /** `frameHolder` is the address of a structure that has the frame here; -1: it is the frame's address itself. */
  readonly frameInHolder: number
  /** In a frame: its code object, the frame before it, and the byte that marks an entry from C. */
  readonly code: number
  readonly previous: number
  readonly entry: number
}

/** Takes what the sampler tells between counts. Nothing of it is reused. */
export interface StackSink {
  userStack(stack: RawStack): void
  /** Leaf first; the low 48 bits of each address. */
  kernelStack(hash: number, addresses: Float64Array): void
  unknownFile(file: UnknownFile): void
  unknownRuntime(runtime: UnknownRuntime): void
}

export type SampleKind = 'cpu' | 'memory' | 'off_cpu'

/** How often a stack was met since the last question. Reused: nothing of it may be kept. */
export interface StackCount {
  kind: SampleKind
  pid: number
  comm: string
  userHash: number
  /** 0: it ran in user space, or frames of the kernel are not taken. */
  kernelHash: number
  /** Names the request that its thread served; 0: none. */
  request: number
  count: number
  /** `cpu`: nanoseconds of CPU time that the samples stand for; `memory`: bytes; `off_cpu`: nanoseconds of waiting. */
  value: number
}
