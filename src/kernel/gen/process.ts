// Written by tools/gen-bpf.ts from process.bpf.o: change bpf/ and run it again.

/** struct svc_process_event: offsets in bytes. */
export const svcProcessEvent = {
  size: 520,
  timeNs: 0,
  startNs: 8,
  cgroup: 16,
  bootNs: 24,
  kind: 32,
  pid: 36,
  parent: 40,
  uid: 44,
  status: 48,
  oomKilled: 52,
  pad: 53,
  pathLength: 54,
  comm: 56,
  commSize: 16,
  path: 72,
  pathSize: 256,
  group: 328,
  groupSize: 96,
  above: 424,
  aboveSize: 96,
} as const

/** enum svc_process_kind. */
export const svcProcessKind = [
  'exec',
  'exit',
  'oom_kill',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 1108,
  unusedEvent: 0,
  unusedKind: 8,
  eventsMax: 16,
  execs: 24,
  starts: 32,
  exits: 40,
  exitsSize: 1024,
  oomKills: 1064,
  untold: 1072,
  untoldSize: 24,
  second: 1096,
  told: 1104,
} as const
