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
  size: 400,
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
  owner: 392,
  pad: 396,
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
  size: 16944,
  selfPid: 0,
  watching: 4,
  pairsUsed: 8,
  groupPairs: 12,
  groupPairsSize: 512,
  ownerPairs: 524,
  ownerPairsSize: 16384,
  unusedSide: 16912,
  unusedFailure: 16920,
  overflowed: 16928,
  storageFull: 16936,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 648,
  pairsMax: 0,
  connectBoundsNs: 8,
  connectBoundsNsSize: 112,
  rttBoundsUs: 120,
  rttBoundsUsSize: 112,
  ownerSeeds: 232,
  ownerSeedsSize: 16,
  zeroPair: 248,
} as const
