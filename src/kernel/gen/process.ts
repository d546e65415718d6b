// Written by tools/gen-bpf.ts from process.bpf.o: change bpf/ and run it again.

/** struct svc_process_event: offsets in bytes. */
export const svcProcessEvent = {
  size: 320,
  timeNs: 0,
  startNs: 8,
  cgroup: 16,
  kind: 24,
  pid: 28,
  parent: 32,
  uid: 36,
  status: 40,
  oomKilled: 44,
  pad: 45,
  pathLength: 46,
  comm: 48,
  commSize: 16,
  path: 64,
  pathSize: 256,
} as const

/** enum svc_process_kind. */
export const svcProcessKind = [
  'exec',
  'exit',
  'oom_kill',
] as const

/** Section .bss: offsets in bytes. */
export const bss = {
  size: 1100,
  unusedEvent: 0,
  unusedKind: 8,
  execs: 16,
  starts: 24,
  exits: 32,
  exitsSize: 1024,
  oomKills: 1056,
  untold: 1064,
  untoldSize: 24,
  second: 1088,
  told: 1096,
} as const

/** Section .rodata: offsets in bytes. */
export const rodata = {
  size: 4,
  eventsMax: 0,
} as const
