// Written by tools/gen-bpf.ts from profile.bpf.o: change bpf/ and run it again.

/** struct svc_inode: offsets in bytes. */
export const svcInode = {
  size: 16,
  inode: 0,
  dev: 8,
  generation: 12,
} as const

/** struct svc_profile_process: offsets in bytes. */
export const svcProfileProcess = {
  size: 48,
  mm: 0,
  pythonRuntime: 8,
  v8Shared: 16,
  pythonCurrentThread: 20,
  pythonNativeThreadId: 24,
  pythonFrameHolder: 28,
  pythonFrameInHolder: 32,
  pythonCode: 36,
  pythonPrevious: 40,
  pythonEntry: 44,
} as const

/** struct svc_count_key: offsets in bytes. */
export const svcCountKey = {
  size: 48,
  user: 0,
  kernel: 8,
  request: 16,
  pid: 24,
  kind: 28,
  comm: 32,
  commSize: 16,
} as const

/** struct svc_stack_record: offsets in bytes. */
export const svcStackRecord = {
  size: 2088,
  kind: 0,
  pid: 4,
  hash: 8,
  comm: 16,
  commSize: 16,
  frames: 32,
  inner: 34,
  end: 36,
  frame: 40,
  frameSize: 2048,
} as const

/** struct svc_count: offsets in bytes. */
export const svcCount = {
  size: 16,
  count: 0,
  value: 8,
} as const

/** struct svc_file_record: offsets in bytes. */
export const svcFileRecord = {
  size: 48,
  kind: 0,
  pid: 4,
  inode: 8,
  start: 16,
  end: 24,
  offset: 32,
  dev: 40,
  generation: 44,
} as const

/** struct svc_runtime_record: offsets in bytes. */
export const svcRuntimeRecord = {
  size: 40,
  kind: 0,
  pid: 4,
  mm: 8,
  start: 16,
  offset: 24,
  file: 32,
  pad: 36,
} as const

/** struct svc_unwind_rule: offsets in bytes. */
export const svcUnwindRule = {
  size: 8,
  cfa: 0,
  rbp: 1,
  rbpOffset: 2,
  cfaOffset: 4,
} as const

/** struct svc_unwind_file: offsets in bytes. */
export const svcUnwindFile = {
  size: 24,
  firstPage: 0,
  pages: 4,
  firstRow: 8,
  rows: 12,
  runtime: 16,
  used: 20,
} as const

/** enum svc_unwind_cfa. */
export const svcUnwindCfa = [
  'none',
  'rbp',
  'rsp',
  'plt',
  'deref_rbp',
  'stop',
  'unsupported',
  'signal',
  'deref_rsp',
  'frame_pointer',
] as const

/** enum svc_unwind_rbp. */
export const svcUnwindRbp = [
  'kept',
  'saved',
  'undefined',
  'at_rbp',
] as const

/** enum svc_runtime. */
export const svcRuntime = {
  none: 0,
  v8: 1,
  cpython: 2,
  address: 255,
} as const

/** enum svc_stack_end. */
export const svcStackEnd = [
  'complete',
  'no_mapping',
  'unknown_file',
  'no_rule',
  'read_fault',
  'truncated',
  'unsupported',
  'frame_pointer_end',
] as const

/** enum svc_frame_space. */
export const svcFrameSpace = {
  address: 0,
  cpython: 65533,
  v8: 65534,
} as const

/** enum svc_sample_kind. */
export const svcSampleKind = [
  'cpu',
  'memory',
  'off_cpu',
] as const

/** enum svc_stack_record_kind. */
export const svcStackRecordKind = [
  'user',
  'kernel',
  'file',
  'runtime',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 8585504,
  pageBytes: 0,
  unusedCfa: 8,
  unusedRbp: 16,
  unusedRuntime: 24,
  unusedEnd: 32,
  unusedSpace: 40,
  unusedSample: 48,
  unusedKind: 56,
  unusedFile: 64,
  unusedProcess: 72,
  pages: 80,
  pagesSize: 65536,
  rules: 65616,
  rulesSize: 32768,
  files: 98384,
  filesSize: 98304,
  includeKernel: 196688,
  selfPid: 196692,
  active: 196696,
  counted: 196700,
  countedSize: 8,
  epoch: 196708,
  periodNs: 196712,
  cpuTurn: 196720,
  waitsTurn: 196724,
  samples: 196728,
  samplesSize: 24,
  samplesNs: 196752,
  idle: 196760,
  idleNs: 196768,
  own: 196776,
  ends: 196784,
  endsSize: 64,
  ringFull: 196848,
  countsFull: 196856,
  countsFullSize: 24,
  otherMemory: 196880,
  otherThread: 196888,
  rows: 196896,
  rowsSize: 8388608,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 1,
  hasRequests: 0,
} as const
