// Written by tools/gen-bpf.ts from syscalls.bpf.o: change bpf/ and run it again.

export { svcCounter, svcCounters, svcKind, svcMethod, svcProtocol, svcSegment, svcSide, svcSocket, svcThread, svcTlsFunction } from './sock.ts'

/** struct svc_syscall_call: offsets in bytes. */
export const svcSyscallCall = {
  size: 48,
  address: 0,
  name: 8,
  time: 16,
  count: 24,
  fd: 28,
  nr: 32,
  kind: 36,
  direction: 37,
  isSocket: 38,
  told: 39,
  forTls: 40,
  pad: 41,
  padSize: 7,
} as const

/** struct svc_syscall_key: offsets in bytes. */
export const svcSyscallKey = {
  size: 8,
  pid: 0,
  fd: 4,
} as const

/** struct svc_syscall_connection: offsets in bytes. */
export const svcSyscallConnection = {
  size: 88,
  id: 0,
  position: 8,
  positionSize: 8,
  from: 16,
  fromSize: 8,
  turn: 24,
  localPort: 28,
  peerPort: 30,
  localAddress: 32,
  localAddressSize: 16,
  peerAddress: 48,
  peerAddressSize: 16,
  error: 64,
  state: 66,
  protocol: 67,
  role: 68,
  direction: 69,
  misses: 70,
  joined: 71,
  known: 72,
  blocking: 73,
  datagrams: 74,
  missed: 75,
  pad: 76,
  padSize: 4,
  inside: 80,
} as const

/** struct svc_syscall_settings: offsets in bytes. */
export const svcSyscallSettings = {
  size: 32,
  turns: 0,
  wakeupBytes: 8,
  selfPid: 16,
  magic: 20,
  enabled: 24,
  wide: 28,
} as const

/** struct svc_syscall_address: offsets in bytes. */
export const svcSyscallAddress = {
  size: 64,
  kind: 0,
  pid: 4,
  timeNs: 8,
  connection: 16,
  localAddress: 24,
  localAddressSize: 16,
  peerAddress: 40,
  peerAddressSize: 16,
  localPort: 56,
  peerPort: 58,
  pad: 60,
  padSize: 4,
} as const

/** struct svc_syscall_sweep: offsets in bytes. */
export const svcSyscallSweep = {
  size: 24,
  kind: 0,
  pid: 4,
  timeNs: 8,
  first: 16,
  last: 20,
} as const

/** enum svc_syscall_call_kind. */
export const svcSyscallCallKind = [
  'none',
  'buffer',
  'vector',
  'message',
  'messages',
  'unseen',
  'accept',
  'connect',
  'listen',
] as const

/** enum svc_syscall_kind. */
export const svcSyscallKind = {
  address: 64,
  sweep: 65,
} as const

/** enum svc_syscall_state. */
export const svcSyscallState = [
  'unknown',
  'listening',
  'followed',
  'off',
] as const

/** enum svc_syscall_role. */
export const svcSyscallRole = [
  'unknown',
  'client',
  'server',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 128,
  exportSvcSide: 0,
  exportSvcMethod: 8,
  exportSvcCounter: 16,
  exportSvcSocket: 24,
  exportSvcSegment: 32,
  exportSvcThread: 40,
  exportSvcKind: 48,
  exportSvcProtocol: 56,
  exportSvcSyscallCallKind: 64,
  exportSvcSyscallKind: 72,
  exportSvcSyscallState: 80,
  exportSvcSyscallRole: 88,
  exportSvcSyscallAddress: 96,
  exportSvcSyscallSweep: 104,
  exportSvcTlsFunction: 112,
  rungAt: 120,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 17,
  ownerSeeds: 0,
  ownerSeedsSize: 16,
  tellsAncestors: 16,
} as const
