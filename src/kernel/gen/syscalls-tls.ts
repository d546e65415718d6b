// Written by tools/gen-bpf.ts from syscalls-tls.bpf.o: change bpf/ and run it again.

export { rodata, svcSyscallAddress, svcSyscallCall, svcSyscallCallKind, svcSyscallConnection, svcSyscallKey, svcSyscallKind, svcSyscallRole, svcSyscallSettings, svcSyscallState, svcSyscallSweep } from './syscalls.ts'
export { svcCounter, svcCounters, svcKind, svcMethod, svcProtocol, svcSegment, svcSide, svcSocket, svcThread, svcTlsFunction } from './sock.ts'

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 128,
  rungAt: 0,
  exportSvcSide: 8,
  exportSvcMethod: 16,
  exportSvcCounter: 24,
  exportSvcSocket: 32,
  exportSvcSegment: 40,
  exportSvcThread: 48,
  exportSvcKind: 56,
  exportSvcProtocol: 64,
  exportSvcSyscallCallKind: 72,
  exportSvcSyscallKind: 80,
  exportSvcSyscallState: 88,
  exportSvcSyscallRole: 96,
  exportSvcSyscallAddress: 104,
  exportSvcSyscallSweep: 112,
  exportSvcTlsFunction: 120,
} as const
