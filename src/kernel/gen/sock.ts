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
  pad: 30,
  padSize: 2,
  comm: 32,
  commSize: 16,
} as const

/** struct svc_red: offsets in bytes. */
export const svcRed = {
  size: 136,
  count: 0,
  sumNs: 8,
  buckets: 16,
  bucketsSize: 120,
} as const

/** struct svc_record: offsets in bytes. */
export const svcRecord = {
  size: 184,
  startNs: 0,
  responseNs: 8,
  endNs: 16,
  cgroup: 24,
  requestBytes: 32,
  responseBytes: 40,
  requestHead: 48,
  responseHead: 52,
  pid: 56,
  sequence: 60,
  localAddress: 64,
  localAddressSize: 16,
  peerAddress: 80,
  peerAddressSize: 16,
  localPort: 96,
  peerPort: 98,
  status: 100,
  error: 102,
  captured: 104,
  side: 106,
  method: 107,
  minor: 108,
  aborted: 109,
  hasTraceparent: 110,
  family: 111,
  comm: 112,
  commSize: 16,
  traceparent: 128,
  traceparentSize: 56,
} as const

/** struct svc_counters: offsets in bytes. */
export const svcCounters = {
  size: 152,
  values: 0,
  valuesSize: 152,
} as const

/** struct svc_socket: offsets in bytes. */
export const svcSocket = {
  size: 8,
  pid: 0,
  port: 4,
  state: 6,
  family: 7,
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
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 65732,
  selfPid: 0,
  exportSvcSide: 8,
  exportSvcMethod: 16,
  exportSvcCounter: 24,
  exportSvcSocket: 32,
  budgetPerWindow: 40,
  slowNs: 48,
  budgetShare: 56,
  alwaysErrors: 60,
  alwaysSlow: 61,
  budgetBurst: 64,
  ports: 72,
  portsSize: 65536,
  budgetWindow: 65664,
  budgetLeft: 65672,
  budgetLeftSize: 16,
  ringWoken: 65728,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 264,
  captureBytes: 0,
  ringWakeupBytes: 8,
  svcBoundsNs: 16,
  svcBoundsNsSize: 112,
  redZero: 128,
} as const
