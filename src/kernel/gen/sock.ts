// Written by tools/gen-bpf.ts from sock.bpf.o: change bpf/ and run it again.

/** struct svc_red_key: offsets in bytes. */
export const svcRedKey = {
  size: 48,
  peerAddress: 0,
  peerAddressSize: 16,
  pid: 16,
  port: 20,
  status: 22,
  side: 24,
  method: 25,
  minor: 26,
  aborted: 27,
  error: 28,
  protocol: 30,
  pad: 31,
  comm: 32,
  commSize: 16,
} as const

/** struct svc_red: offsets in bytes. */
export const svcRed = {
  size: 144,
  count: 0,
  sumNs: 8,
  buckets: 16,
  bucketsSize: 128,
} as const

/** struct svc_record: offsets in bytes. */
export const svcRecord = {
  size: 200,
  kind: 0,
  tid: 4,
  startNs: 8,
  responseNs: 16,
  endNs: 24,
  cgroup: 32,
  requestBytes: 40,
  responseBytes: 48,
  requestHead: 56,
  responseHead: 60,
  pid: 64,
  sequence: 68,
  localAddress: 72,
  localAddressSize: 16,
  peerAddress: 88,
  peerAddressSize: 16,
  localPort: 104,
  peerPort: 106,
  status: 108,
  error: 110,
  captured: 112,
  side: 114,
  method: 115,
  minor: 116,
  aborted: 117,
  hasTraceparent: 118,
  family: 119,
  comm: 120,
  commSize: 16,
  traceparent: 136,
  traceparentSize: 56,
  blocking: 192,
  moreContext: 193,
  told: 194,
  doubt: 195,
  sampled: 196,
  pad: 197,
  padSize: 3,
} as const

/** struct svc_counters: offsets in bytes. */
export const svcCounters = {
  size: 176,
  values: 0,
  valuesSize: 176,
} as const

/** struct svc_segment: offsets in bytes. */
export const svcSegment = {
  size: 112,
  kind: 0,
  pid: 4,
  timeNs: 8,
  connection: 16,
  cgroup: 24,
  tid: 32,
  position: 36,
  sequence: 40,
  length: 44,
  captured: 48,
  tail: 50,
  localPort: 52,
  peerPort: 54,
  localAddress: 56,
  localAddressSize: 16,
  peerAddress: 72,
  peerAddressSize: 16,
  comm: 88,
  commSize: 16,
  error: 104,
  flags: 106,
  protocol: 107,
  served: 108,
} as const

/** struct svc_socket: offsets in bytes. */
export const svcSocket = {
  size: 8,
  pid: 0,
  port: 4,
  state: 6,
  family: 7,
} as const

/** struct svc_thread: offsets in bytes. */
export const svcThread = {
  size: 16,
  kind: 0,
  pid: 4,
  parent: 8,
  tid: 12,
} as const

/** enum svc_side. */
export const svcSide = [
  'client',
  'server',
] as const

/** enum svc_method. */
export const svcMethod = [
  'other',
  'get',
  'head',
  'post',
  'put',
  'delete',
  'connect',
  'options',
  'trace',
  'patch',
  'query',
] as const

/** enum svc_counter. */
export const svcCounter = [
  'finished',
  'records',
  'ring_full',
  'over_budget',
  'red_full',
  'fault',
  'unreadable',
  'io_uring',
  'compat32',
  'desync',
  'orphan_response',
  'abandoned',
  'storage_full',
  'pipeline_full',
  'messages_bound',
  'connections',
  'not_recognised',
  'excluded',
  'sockets_found',
  'segments',
  'segments_lost',
  'streams',
] as const

/** enum svc_kind. */
export const svcKind = [
  'exchange',
  'begin',
  'segment',
  'thread',
] as const

/** enum svc_protocol. */
export const svcProtocol = [
  'none',
  'http1',
  'http2',
  'dns',
  'postgres',
  'mysql',
  'redis',
  'memcached',
  'mongodb',
  'kafka',
  'amqp',
  'mqtt',
  'nats',
] as const

/** enum svc_tls_function. */
export const svcTlsFunction = [
  'read',
  'write',
  'read_ex',
  'write_ex',
  'handshake',
  'free',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 200004,
  budget: 0,
  budgetNs: 64,
  budgetBurst: 72,
  budgetShare: 80,
  protocolsEnabled: 84,
  trackRequests: 88,
  selfPid: 128,
  threadsTls: 132,
  threadsTlsSize: 16384,
  exportSvcSide: 16520,
  exportSvcMethod: 16528,
  exportSvcCounter: 16536,
  exportSvcSocket: 16544,
  exportSvcSegment: 16552,
  exportSvcThread: 16560,
  exportSvcKind: 16568,
  exportSvcProtocol: 16576,
  slowNs: 16584,
  alwaysErrors: 16592,
  alwaysSlow: 16593,
  ports: 16594,
  portsSize: 65536,
  threadsServing: 82130,
  threadsServingSize: 16384,
  rungAt: 98520,
  ownersHad: 98560,
  ownersHadSize: 98304,
  groupsHad: 196864,
  groupsHadSize: 3072,
  exportSvcTlsFunction: 199936,
  tlsAttached: 200000,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 417,
  captureBytes: 0,
  ringWakeupBytes: 8,
  svcBoundsNs: 16,
  svcBoundsNsSize: 120,
  redZero: 136,
  tlsSessionZero: 280,
  ownerSeeds: 400,
  ownerSeedsSize: 16,
  callsComeTwice: 416,
} as const
