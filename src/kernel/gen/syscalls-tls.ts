// Written by tools/gen-bpf.ts from syscalls-tls.bpf.o: change bpf/ and run it again.

export { bss, rodata, svcSyscallAddress, svcSyscallCall, svcSyscallCallKind, svcSyscallConnection, svcSyscallKey, svcSyscallKind, svcSyscallRole, svcSyscallSettings, svcSyscallState, svcSyscallSweep } from './syscalls.ts'
export { svcCounter, svcCounters, svcKind, svcMethod, svcProtocol, svcSegment, svcSide, svcSocket, svcThread, svcTlsFunction } from './sock.ts'
