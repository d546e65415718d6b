// Written by tools/gen-bpf.ts from host.bpf.o: change bpf/ and run it again.

/** struct svc_process: offsets in bytes. */
export const svcProcess = {
  size: 20,
  openFds: 0,
  comm: 4,
  commSize: 16,
} as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 144,
  rttBuckets: 0,
  rttBucketsSize: 120,
  rttSum: 120,
  retransmits: 128,
  unusedProcess: 136,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 112,
  rttBounds: 0,
  rttBoundsSize: 112,
} as const
