// Written by tools/gen-bpf.ts from syscount.bpf.o: change bpf/ and run it again.

/** struct svc_syscall_key: offsets in bytes. */
export const svcSyscallKey = {
  size: 8,
  pid: 0,
  nr: 4,
  error: 6,
} as const

/** struct svc_syscall: offsets in bytes. */
export const svcSyscall = {
  size: 128,
  count: 0,
  sumNs: 8,
  buckets: 16,
  bucketsSize: 96,
  comm: 112,
  commSize: 16,
} as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 80,
  unusedSyscall: 0,
  wanted: 8,
  wantedSize: 64,
  lost: 72,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 136,
  selfPid: 0,
  zeroSyscall: 8,
} as const
