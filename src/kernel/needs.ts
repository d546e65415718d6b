import { closeSync, openSync } from 'node:fs'
import { release } from 'node:os'
import { errorText } from '../foundation/lib/logger.ts'
import { refusalOf, refusals } from './bpf-refusal.ts'
import { loadNative, mapType, type Native, programType, Unsupported } from './native.ts'
import { capabilityHints, type Fault, type Finding, hintText, type Need, need, outcomeOf } from './need.ts'
import { foreignProcesses, hostPid } from './needs-processes.ts'
import { tracepointFields } from './tracepoints.ts'

export type { Need } from './need.ts'

const tracing = 'traces and request metrics'

const backports = 'on Debian 12: apt install -t bookworm-backports linux-image-amd64 (-arm64), then reboot'

/** A need that cannot be tried before another one is met. */
const untried = {
  state: 'unknown',
  what: 'this cannot be checked until svc may load programs and has the native addon',
  hints: { any: 'fix what is missing above, then rerun svc doctor traces' },
} as const satisfies Fault

/** First kernel with the eBPF tracing that the specification requires. */
export const kernelVersion = need({
  name: 'kernel',
  group: 'traces',
  summary: 'The kernel is new enough for eBPF tracing',
  impact: 'all features that use eBPF',
  faults: {
    too_old: {
      state: 'missing',
      what: 'the kernel is older than 4.18',
      hints: { kernel: 'run Linux 6.3 or newer, which capturing requests needs' },
    },
  },
  try: () => {
    const version = release()
    return atLeast(version, 4, 18)
      ? { ok: `Linux ${version}` }
      : { fault: 'too_old', detail: `Linux ${version} is older than 4.18` }
  },
})

/** The addon and libbpf. */
export const addon = need({
  name: 'native addon',
  group: 'traces',
  summary: 'svc.node, the part of svc that talks to the kernel, loads with its libraries',
  impact: tracing,
  faults: {
    absent: {
      state: 'missing',
      what: 'svc.node is not where the package installs it',
      hints: { package: 'reinstall the svc package; in a source tree: bash tools/setup' },
    },
    library: {
      state: 'missing',
      what: 'a library that svc.node needs is not installed',
      hints: {
        package:
          'apt-get install libbpf1 libelf1 zlib1g, or dnf install libbpf elfutils-libelf zlib, or apk add libbpf libelf zlib',
      },
    },
    old_library: {
      state: 'missing',
      what: 'the installed libbpf is older than 1.0',
      hints: { package: 'apt-get install libbpf1 (Debian 12, Ubuntu 22.10 and newer have it)' },
    },
    broken: {
      state: 'missing',
      what: 'svc.node cannot be loaded: wrong architecture, wrong C library, or a damaged file',
      hints: { package: 'install the svc package for this architecture (uname -m) and for glibc' },
    },
  },
  try: () => {
    const native = loadNative()
    if (!(native instanceof Unsupported)) return { ok: 'loaded, with libbpf' }
    const detail = native.reason
    if (/^cannot find/.test(detail)) return { fault: 'absent', detail }
    if (/ is missing$/.test(detail)) return { fault: 'library', detail }
    return { fault: /older than 1\.0$/.test(detail) ? 'old_library' : 'broken', detail }
  },
})

/** Permission to load tracing programs, tested by loading one. */
export const loadPrograms = need({
  name: 'eBPF programs',
  group: 'traces',
  summary: 'svc may load tracing programs; a two-instruction program is loaded and unloaded',
  impact: tracing,
  capabilities: ['BPF', 'PERFMON'],
  faults: { ...refusals, untried },
  try: () =>
    withNative(native => {
      const code = native.tryLoad(programType.rawTracepoint, returnZero)
      return code === '' ? { ok: 'a two-instruction program was loaded' } : refusalOf(code)
    }),
})

/** Programs may read kernel memory: kernel_lockdown(7) forbids it in mode `confidentiality`. */
export const kernelMemory = need({
  name: 'kernel memory',
  group: 'traces',
  summary: 'Programs may read kernel memory; one that does is loaded and unloaded without running it',
  impact: tracing,
  faults: {
    lockdown: {
      state: 'missing',
      what: 'the kernel is locked down in mode `confidentiality`; svc works in mode `integrity`',
      hints: { kernel: 'boot with lockdown=integrity (or without lockdown=) on the kernel’s command line' },
    },
    too_old: {
      state: 'missing',
      what: 'the kernel is older than 5.5 and has no helper bpf_probe_read_kernel',
      hints: { kernel: 'run Linux 6.3 or newer, which capturing requests needs' },
    },
    untried,
  },
  try: () =>
    withNative(native => {
      if (native.tryLoad(programType.rawTracepoint, returnZero) !== '') return cannotLoad
      const code = native.tryLoad(programType.rawTracepoint, readKernel)
      if (code === '') return { ok: 'a program that reads it was loaded' }
      return {
        fault: atLeast(release(), 5, 5) ? 'lockdown' : 'too_old',
        detail: `the kernel rejected a program that reads it: ${code}`,
      }
    }),
})

const vmlinux = '/sys/kernel/btf/vmlinux'

/** The kernel's type information, without which programs cannot be relocated to it. */
export const btf = need({
  name: 'BTF',
  group: 'traces',
  summary: `The kernel describes its types in ${vmlinux}, so that programs can adapt to it`,
  impact: tracing,
  faults: {
    absent: {
      state: 'missing',
      what: 'the kernel was built without BTF, or /sys is not the host’s',
      hints: {
        any: 'run a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 11, Ubuntu 20.10, RHEL 8.2 and newer have it)',
        container: 'docker run -v /sys:/sys:ro',
        kubernetes: 'volumes: [{name: sys, hostPath: {path: /sys}}], mounted at /sys',
      },
    },
    unreadable: {
      state: 'missing',
      what: 'the file exists but cannot be read',
      hints: {
        any: 'chmod a+r /sys/kernel/btf/vmlinux',
        container: 'docker run -v /sys:/sys:ro --security-opt systempaths=unconfined',
        kubernetes: 'securityContext: {procMount: Unmasked}',
      },
    },
  },
  try: () => {
    try {
      closeSync(openSync(vmlinux, 'r'))
      return { ok: vmlinux }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return code === 'ENOENT'
        ? { fault: 'absent', detail: `${vmlinux} does not exist: the kernel has no BTF` }
        : { fault: 'unreadable', detail: `cannot read ${vmlinux}: ${code}` }
    }
  },
})

/** `sock_send_length` and `sock_recv_length`, Linux 6.3. */
export const socketTracepoints = need({
  name: 'socket tracepoints',
  group: 'traces',
  summary: 'The kernel has the tracepoints sock_send_length and sock_recv_length (Linux 6.3)',
  impact: tracing,
  faults: {
    absent: {
      state: 'missing',
      what: 'the kernel is older than 6.3: requests are captured at system calls, which costs more and shows less',
      impact: 'exact counts above the budget, TLS before Linux 5.10, and some of the speed',
      hints: { kernel: `run Linux 6.3 or newer; ${backports}` },
    },
    untried: {
      state: 'unknown',
      what: 'the kernel types cannot be read (see BTF), or the native addon is missing',
      hints: { any: 'fix what is missing above, then rerun svc doctor traces' },
    },
  },
  try: () =>
    withNative(native => {
      try {
        const [found] = native.btfHas('typedef', ['btf_trace_sock_send_length'])
        if (found) return { ok: 'sock_send_length and sock_recv_length' }
      } catch (error) {
        return { fault: 'untried', detail: errorText(error) }
      }
      return {
        fault: 'absent',
        detail: `Linux ${release()} has no tracepoint sock_send_length (Linux 6.3 has)`,
      }
    }),
})

/** Offsets of the fields that the programs read in a system call's tracepoint: its arguments, 8 bytes each. */
const callFields: Readonly<Record<string, readonly string[]>> = {
  'syscalls/sys_enter_read': ['fd', 'buf', 'count'],
  'syscalls/sys_enter_sendto': ['fd', 'buff', 'len', 'flags', 'addr'],
  'syscalls/sys_enter_close': ['fd'],
  'syscalls/sys_exit_read': ['ret'],
}

/** For the capture of requests before Linux 6.3. */
export const syscallTracepoints = need({
  name: 'system call tracepoints',
  group: 'traces',
  summary: 'The kernel has tracepoints for system calls, which capture requests before Linux 6.3',
  impact: `${tracing} before Linux 6.3`,
  faults: {
    absent: {
      state: 'missing',
      what: 'tracefs is not mounted or not readable, or the kernel was built without CONFIG_FTRACE_SYSCALLS',
      hints: {
        any: 'mount -t tracefs tracefs /sys/kernel/tracing',
        container: 'docker run -v /sys/kernel/tracing:/sys/kernel/tracing:ro',
        kubernetes:
          'volumes: [{name: tracing, hostPath: {path: /sys/kernel/tracing}}], mounted at /sys/kernel/tracing',
      },
    },
    other: {
      state: 'missing',
      what: 'the record layout of these tracepoints is unknown to svc',
      hints: { kernel: 'run Linux 6.3 or newer, where svc does not need them' },
    },
  },
  try: () =>
    'ok' in socketTracepoints.try()
      ? { ok: 'not needed: the socket tracepoints are available' }
      : triedSyscallTracepoints(),
})

/** The same if requests are followed by system calls regardless of the kernel's features. */
export const syscallTracepointsAnyway: Need = { ...syscallTracepoints, try: triedSyscallTracepoints }

function triedSyscallTracepoints(): Finding<'absent' | 'other'> {
  for (const [tracepoint, names] of Object.entries(callFields)) {
    const fields = tracepointFields(tracepoint)
    if (fields === undefined)
      return { fault: 'absent', detail: `there is no tracepoint ${tracepoint} in /sys/kernel/tracing` }
    for (const [i, name] of names.entries()) {
      const at = 16 + 8 * i
      if (!fields.some(field => field.name === name && field.offset === at && field.size === 8))
        return { fault: 'other', detail: `${tracepoint} does not have ${name} at byte ${at}` }
    }
  }
  return { ok: 'sys_enter_read and similar' }
}

/** Linux 5.8. */
export const ringBuffer = need({
  name: 'ring buffer',
  group: 'traces',
  summary: 'The kernel can pass records through a ring buffer (Linux 5.8); one is created and removed',
  impact: tracing,
  faults: {
    absent: {
      state: 'missing',
      what: 'the kernel is older than 5.8, or lacks memory for a ring buffer of one page',
      hints: { kernel: 'run Linux 5.8 or newer; 6.3 for capturing requests' },
    },
    untried,
  },
  try: () =>
    withNative(native => {
      if (native.tryLoad(programType.rawTracepoint, returnZero) !== '') return cannotLoad
      const answer = native.probeMapType(mapType.ringbuf)
      if (answer === 1) return { ok: 'BPF_MAP_TYPE_RINGBUF' }
      if (answer < 0) return { fault: 'untried', detail: `the check failed with errno ${-answer}` }
      return { fault: 'absent', detail: 'a ring buffer could not be created' }
    }),
})

/** Before Linux 5.11 maps and programs count against RLIMIT_MEMLOCK, usually 64 KiB. */
export const lockedMemory = need({
  name: 'locked memory',
  group: 'traces',
  summary: 'Kernels before 5.11 count maps against the locked memory limit, which svc lifts for itself',
  impact: tracing,
  faults: {
    limit: {
      state: 'missing',
      what: 'the kernel is older than 5.11, and svc may not lift its locked memory limit',
      hints: {
        any: 'ulimit -l unlimited',
        systemd: 'LimitMEMLOCK=infinity',
        container: 'docker run --ulimit memlock=-1',
        kubernetes: capabilityHints('SYS_RESOURCE').kubernetes,
      },
    },
    untried,
  },
  try: () => tryLockedMemory(release()),
})

/** For a kernel with this `version`. */
export function tryLockedMemory(version: string): Finding<'limit' | 'untried'> {
  if (atLeast(version, 5, 11)) return { ok: 'no limit since Linux 5.11' }
  return withNative(native => {
    try {
      native.bumpMemlock()
      return { ok: 'the limit was lifted' }
    } catch (error) {
      return { fault: 'limit', detail: errorText(error) }
    }
  })
}

/** All needs of the kernel and of /proc, as `svc doctor` tests them. */
export const needs: readonly Need[] = [
  kernelVersion,
  addon,
  loadPrograms,
  kernelMemory,
  btf,
  socketTracepoints,
  syscallTracepoints,
  ringBuffer,
  lockedMemory,
  hostPid,
  foreignProcesses,
]

/** A missing feature, and one sentence on how to fix it on this installation. */
export interface Missing {
  readonly detail: string
  readonly hint: string
}

/** The first of `wanted` that is missing; undefined if none is. */
export function firstMissing(wanted: readonly Need[]): Missing | undefined {
  for (const each of wanted) {
    const { state, detail, hints = {} } = outcomeOf(each, each.try())
    if (state === 'missing') return { detail, hint: hintText(hints) }
  }
  return undefined
}

/** The degradation of an agent in its own pid namespace, and the hint. */
export const ownPids = {
  detail: 'svc runs in its own pid namespace, where the kernel’s pids are not valid',
  impact: hostPid.impact,
  get hint(): string {
    return hintText(hostPid.faults.own.hints)
  },
}

/** `r0 = 0; exit` */
const returnZero = new Uint8Array([0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])

/** `r1 = r10 - 8; r2 = 8; r3 = 0; call bpf_probe_read_kernel (113); r0 = 0; exit` */
const readKernel = new Uint8Array([
  ...[0xbf, 0xa1, 0, 0, 0, 0, 0, 0],
  ...[0x07, 0x01, 0, 0, 0xf8, 0xff, 0xff, 0xff],
  ...[0xb7, 0x02, 0, 0, 8, 0, 0, 0],
  ...[0xb7, 0x03, 0, 0, 0, 0, 0, 0],
  ...[0x85, 0, 0, 0, 113, 0, 0, 0],
  ...returnZero,
])

const cannotLoad = {
  fault: 'untried',
  detail: 'cannot be checked without permission to load programs',
} as const

function withNative<F extends string>(probe: (native: Native) => Finding<F>): Finding<F | 'untried'> {
  const native = loadNative()
  if (!(native instanceof Unsupported)) return probe(native)
  return { fault: 'untried', detail: 'cannot be checked without the native addon' }
}

/** True if a kernel with this `version` is at least `major.minor`. */
export function atLeast(version: string, major: number, minor: number): boolean {
  const [ours = 0, less = 0] = version.split('.').map(part => Number.parseInt(part, 10))
  return ours > major || (ours === major && less >= minor)
}
