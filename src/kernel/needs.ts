import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { release } from 'node:os'
import { errorText } from '../lib/logger.ts'
import { loadNative, mapType, type Native, programType, Unsupported } from './native.ts'

/** Outcome of trying a need. `unknown` is never shown as missing. */
export interface NeedResult {
  readonly state: 'ok' | 'limited' | 'missing' | 'unknown' | 'note'
  readonly detail: string
  /** What does not work without it. */
  readonly lose?: string
  /** What to do about it. */
  readonly mend?: string
}

/** Something that a unit needs of this machine. It is tried, not guessed from a version. */
export interface Need {
  readonly name: string
  readonly try: () => NeedResult
}

const tracing = 'no traces and no request metrics'

/** First kernel with eBPF tracing as the specification asks for it. */
export const kernelVersion: Need = {
  name: 'kernel',
  try: () => {
    const version = release()
    const [major = 0, minor = 0] = version.split('.').map(part => Number.parseInt(part, 10))
    if (major > 4 || (major === 4 && minor >= 18)) return { state: 'ok', detail: `Linux ${version}` }
    return {
      state: 'missing',
      detail: `Linux ${version} is older than 4.18`,
      lose: 'everything by eBPF',
      mend: 'run a kernel of 4.18 or newer; 5.15 or newer is best',
    }
  },
}

/** The addon and libbpf. */
export const addon: Need = {
  name: 'native addon',
  try: () => {
    const native = loadNative()
    if (!(native instanceof Unsupported)) return { state: 'ok', detail: 'loaded, with libbpf' }
    return { state: 'missing', detail: native.reason, lose: tracing, mend: native.mend }
  },
}

/** The right to load tracing programs, by loading one. */
export const loadPrograms: Need = {
  name: 'eBPF programs',
  try: () =>
    withNative(native => {
      const code = native.tryLoad(programType.rawTracepoint, returnZero)
      if (code === '') return { state: 'ok', detail: 'a program of two instructions was loaded' }
      return { state: 'missing', detail: refusalOf(code), lose: tracing, mend: refusalMend(code) }
    }),
}

/** The kernel's description of its own types, without which programs cannot be fitted to it. */
export const btf: Need = {
  name: 'BTF',
  try: () => {
    const path = '/sys/kernel/btf/vmlinux'
    try {
      closeSync(openSync(path, 'r'))
      return { state: 'ok', detail: path }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      return {
        state: 'missing',
        detail:
          code === 'ENOENT'
            ? `${path} does not exist: the kernel has no BTF`
            : `cannot read ${path}: ${code}`,
        lose: tracing,
        mend:
          code === 'ENOENT'
            ? 'run a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 11, Ubuntu 20.10, RHEL 8.2 and newer have it)'
            : 'mount sysfs at /sys and let svc read it',
      }
    }
  },
}

/** `sock_send_length` and `sock_recv_length`, Linux 6.3. */
export const socketTracepoints: Need = {
  name: 'socket tracepoints',
  try: () =>
    withNative(native => {
      try {
        const [found] = native.btfHas('typedef', ['btf_trace_sock_send_length'])
        if (found) return { state: 'ok', detail: 'sock_send_length and sock_recv_length' }
      } catch (error) {
        return { state: 'unknown', detail: (error as Error).message }
      }
      return {
        state: 'missing',
        detail: `Linux ${release()} has no tracepoint sock_send_length (Linux 6.3 has)`,
        lose: tracing,
        mend: 'run Linux 6.3 or newer, as this version has no capture back end for older kernels; on Debian 12: apt install -t bookworm-backports linux-image-amd64 (-arm64), then reboot',
      }
    }),
}

/** Linux 5.8. */
export const ringBuffer: Need = {
  name: 'ring buffer',
  try: () =>
    withNative(native => {
      if (native.tryLoad(programType.rawTracepoint, returnZero) !== '')
        return { state: 'unknown', detail: 'cannot be tried without the right to load programs' }
      const answer = native.probeMapType(mapType.ringbuf)
      if (answer === 1) return { state: 'ok', detail: 'BPF_MAP_TYPE_RINGBUF' }
      if (answer < 0) return { state: 'unknown', detail: `the probe failed with errno ${-answer}` }
      return {
        state: 'missing',
        detail: 'a ring buffer could not be made',
        lose: tracing,
        mend: 'run Linux 5.8 or newer',
      }
    }),
}

/** Number of the first pid namespace, the same on every machine (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
const hostPidNamespace = 'pid:[4026531836]'

/** What an agent loses in a pid namespace of its own, and the mend. */
export const ownPids = {
  detail: 'svc runs in a pid namespace of its own, where the kernel’s process numbers mean nothing',
  lose: 'processes are named by their short name only',
  mend: 'run with the host’s pid namespace (docker --pid=host, in Kubernetes hostPID: true)',
} as const

/** The host's numbers of processes, which the kernel gives and /proc is read by. */
export const hostPid: Need = {
  name: 'host pid namespace',
  try: () => {
    let namespace: string
    try {
      namespace = readlinkSync('/proc/self/ns/pid')
    } catch (error) {
      return { state: 'unknown', detail: `cannot read /proc/self/ns/pid: ${errorText(error)}` }
    }
    return namespace === hostPidNamespace
      ? { state: 'ok', detail: 'process numbers are those of the host' }
      : { state: 'limited', ...ownPids }
  },
}

/** All needs, as `svc doctor` tries them. */
export const needs: readonly Need[] = [
  kernelVersion,
  addon,
  loadPrograms,
  btf,
  socketTracepoints,
  ringBuffer,
  hostPid,
]

/** The first of `wanted` that is missing; undefined when nothing is. */
export function firstMissing(wanted: readonly Need[]): NeedResult | undefined {
  for (const need of wanted) {
    const result = need.try()
    if (result.state === 'missing') return result
  }
  return undefined
}

/** `r0 = 0; exit` */
const returnZero = new Uint8Array([0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])

function withNative(probe: (native: Native) => NeedResult): NeedResult {
  const native = loadNative()
  if (native instanceof Unsupported) {
    return { state: 'unknown', detail: 'cannot be tried without the native addon' }
  }
  return probe(native)
}

function refusalOf(code: string): string {
  if (code === 'ENOSYS') return 'the kernel has no bpf system call'
  if (code !== 'EPERM') return `the kernel refused a program of two instructions: ${code}`
  const missing = missingCapabilities()
  if (missing.length > 0) return `not permitted: ${missing.join(' and ')} missing`
  return 'not permitted in spite of the capabilities (seccomp, lockdown, or a container)'
}

function refusalMend(code: string): string {
  if (code === 'ENOSYS') return 'run a kernel built with CONFIG_BPF_SYSCALL=y'
  if (code !== 'EPERM') return 'see the kernel log (dmesg)'
  if (missingCapabilities().length > 0) {
    return 'run as root, or with the capabilities BPF and PERFMON (before Linux 5.8: SYS_ADMIN)'
  }
  return 'allow bpf(2) in the seccomp profile, and check /sys/kernel/security/lockdown'
}

const capabilities = { SYS_ADMIN: 21, PERFMON: 38, BPF: 39 } as const

/** Of BPF and PERFMON; none when SYS_ADMIN, which implies them, is there. */
function missingCapabilities(): string[] {
  const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
  if (effective === undefined) return []
  const has = (name: keyof typeof capabilities) =>
    (BigInt(`0x${effective}`) >> BigInt(capabilities[name])) & 1n
  if (has('SYS_ADMIN')) return []
  return (['BPF', 'PERFMON'] as const).filter(name => !has(name)).map(name => `CAP_${name}`)
}
