// Written by tools/gen-bpf.ts from net.bpf.o: change bpf/ and run it again.

/** struct svc_net_key: offsets in bytes. */
export const svcNetKey = {
  size: 44,
  localAddress: 0,
  localAddressSize: 16,
  peerAddress: 16,
  peerAddressSize: 16,
  netns: 32,
  pid: 36,
  port: 40,
  side: 42,
  pad: 43,
} as const

/** struct svc_net_pair: offsets in bytes. */
export const svcNetPair = {
  size: 392,
  opened: 0,
  open: 8,
  sent: 16,
  received: 24,
  retransmits: 32,
  resetsSent: 40,
  resetsReceived: 48,
  connectNs: 56,
  rttUs: 64,
  connectBuckets: 72,
  connectBucketsSize: 120,
  rttBuckets: 192,
  rttBucketsSize: 120,
  failures: 312,
  failuresSize: 64,
  comm: 376,
  commSize: 16,
} as const

/** enum svc_net_side. */
export const svcNetSide = [
  'client',
  'server',
] as const

/** enum svc_net_failure. */
export const svcNetFailure = [
  'refused',
  'timed_out',
  'host_unreachable',
  'network_unreachable',
  'reset',
  'cancelled',
  'local',
  'other',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 40,
  selfPid: 0,
  watching: 4,
  unusedSide: 8,
  unusedFailure: 16,
  overflowed: 24,
  storageFull: 32,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 616,
  connectBoundsNs: 0,
  connectBoundsNsSize: 112,
  rttBoundsUs: 112,
  rttBoundsUsSize: 112,
  zeroPair: 224,
} as const
