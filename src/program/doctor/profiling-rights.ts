import { closeSync, constants, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../foundation/lib/logger.ts'
import { isKernelThread, statFields } from '../../foundation/lib/process-stat.ts'
import { type Refusal, refusalOf, refusals } from '../../kernel/bpf-refusal.ts'
import { type Capability, heldCapabilities } from '../../kernel/capabilities.ts'
import { mayHangAt } from '../../kernel/mapped-mounts.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { capabilityHints, type Finding } from '../../kernel/need.ts'
import { hostPid } from '../../kernel/needs-processes.ts'
import { readMappings } from '../../kernel/process-maps.ts'
import { check } from './check.ts'

type PerfFault = Refusal | 'paranoid' | 'untried'

export const perfEvents = check({
  name: 'perf events',
  group: 'profiles',
  summary: 'svc may use a CPU timer for all processes (perf_event_open, cpu-clock); one is opened and closed',
  impact: 'profiles',
  capabilities: ['PERFMON'],
  faults: {
    capabilities: {
      ...refusals.capabilities,
      what: 'svc lacks the capabilities. A low `kernel.perf_event_paranoid` does not help: the programs still need them',
    },
    old_capabilities: refusals.old_capabilities,
    user_namespace: {
      ...refusals.user_namespace,
      what: 'svc runs in a user namespace (a rootless container), whose capabilities are not valid for events of all processes',
    },
    paranoid: {
      state: 'missing',
      what: '`kernel.perf_event_paranoid` is 3 or more, and the kernels of some distributions then need more than CAP_PERFMON',
      hints: {
        sysctl: 'sysctl -w kernel.perf_event_paranoid=2',
        systemd: 'AmbientCapabilities=CAP_SYS_ADMIN',
        container: capabilityHints('SYS_ADMIN').container,
        kubernetes: capabilityHints('SYS_ADMIN').kubernetes,
      },
    },
    seccomp: {
      ...refusals.seccomp,
      what: 'svc has the capabilities, but a seccomp filter denies the system call perf_event_open',
      hints: {
        ...refusals.seccomp.hints,
        any: 'allow the system call perf_event_open in the seccomp filter of svc',
        systemd: 'SystemCallFilter=@system-service bpf perf_event_open',
      },
    },
    security_module: refusals.security_module,
    no_system_call: {
      ...refusals.no_system_call,
      what: 'the system call perf_event_open is not available: the kernel was built without it, or a sandbox (gVisor) or a seccomp filter hides it',
      hints: { ...refusals.no_system_call.hints, kernel: 'run a kernel built with CONFIG_PERF_EVENTS=y' },
    },
    refused: { ...refusals.refused, what: 'the kernel rejects the event for another reason' },
    untried: {
      state: 'unknown',
      what: 'this cannot be checked without the native addon',
      hints: { any: 'fix what svc doctor traces reports as missing, then rerun svc doctor profiles' },
    },
  },
  try: () => [tryPerfEvent()],
})

/** `struct perf_event_attr`, its first version: PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, a period, disabled. */
function cpuClock(): Uint8Array {
  const attributes = Buffer.alloc(64)
  attributes.writeUInt32LE(1, 0)
  attributes.writeBigUInt64LE(1_000_000_000n, 16)
  attributes.writeBigUInt64LE(1n, 40)
  return attributes
}

function tryPerfEvent(): Finding<PerfFault> {
  const native = loadNative()
  if (native instanceof Unsupported)
    return { fault: 'untried', detail: 'cannot be checked without the native addon' }
  try {
    closeSync(native.perfEventOpen(cpuClock(), -1, 0, -1, 0))
    return { ok: 'cpu-clock was opened on CPU 0' }
  } catch (error) {
    return perfRefusal((error as NodeJS.ErrnoException).code ?? '', errorText(error))
  }
}

/** Why perf_event_open(2) failed with `code`, from the state of this process in `proc`. */
export function perfRefusal(code: string, message: string, proc = '/proc'): Finding<Refusal | 'paranoid'> {
  if (code === 'ENOSYS')
    return { fault: 'no_system_call', detail: 'the system call perf_event_open is not available' }
  if (code !== 'EACCES' && code !== 'EPERM') return { fault: 'refused', detail: message }
  const refusal = refusalOf('EPERM', proc)
  if (code === 'EPERM' || (refusal.fault !== 'seccomp' && refusal.fault !== 'security_module')) return refusal
  // Filters usually return EPERM; EACCES comes from the kernel's own setting, and from security modules.
  const level = numberIn(`${proc}/sys/kernel/perf_event_paranoid`)
  return level > 2
    ? { fault: 'paranoid', detail: `not permitted: kernel.perf_event_paranoid is ${level}` }
    : refusalOf('EACCES', proc)
}

const fileRights = capabilityHints('SYS_PTRACE', 'CHECKPOINT_RESTORE', 'DAC_READ_SEARCH')

export const mappedFiles = check({
  name: 'files of processes',
  group: 'profiles',
  summary:
    'svc opens the programs and libraries of processes through /proc/PID/map_files; one of each is checked',
  impact:
    'complete stacks and function names: files that cannot be opened have neither unwind tables nor symbols',
  capabilities: ['SYS_PTRACE', 'CHECKPOINT_RESTORE', 'DAC_READ_SEARCH'],
  faults: {
    denied: {
      state: 'limited',
      what: 'the kernel denies access: svc lacks a capability (before Linux 5.9 CAP_SYS_ADMIN instead of CAP_CHECKPOINT_RESTORE), runs in a user namespace, or the AppArmor profile of containers denies it even with them',
      hints: {
        ...fileRights,
        container: `${fileRights.container} --security-opt apparmor=unconfined`,
        kubernetes:
          'securityContext: {runAsUser: 0, capabilities: {add: [SYS_PTRACE, CHECKPOINT_RESTORE, DAC_READ_SEARCH]}, appArmorProfile: {type: Unconfined}}',
      },
    },
    own: {
      ...hostPid.faults.own,
      what: 'svc runs in its own pid namespace: the kernel’s pids match no process, or the wrong one',
    },
    protected: {
      state: 'note',
      what: 'svc has the permissions, but a security module protects single processes',
      hints: { any: 'none needed: the same files are read through other processes' },
    },
    none: {
      state: 'unknown',
      what: 'no process other than svc itself is visible, so this cannot be checked',
      hints: { any: 'fix what svc doctor processes reports, then rerun svc doctor profiles' },
    },
  },
  try: () => [tryMappedFiles('/proc')],
})

/** Maximum number of processes to test. */
const mostProcesses = 128

type FilesFault = 'denied' | 'own' | 'protected' | 'none'

/** Opens, as the agent does, one executable file of each process in the /proc mounted at `proc`. */
function tryMappedFiles(proc: string): Finding<FilesFault> {
  const found = hostPid.try()
  if ('fault' in found && found.fault === 'own') return { fault: 'own', detail: found.detail }
  const codes = new Set<string>()
  let tried = 0
  let refused = 0
  for (const pid of readdirSync(proc)) {
    if (tried === mostProcesses) break
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue
    const code = codeOf(proc, pid)
    if (code === undefined) continue
    tried++
    if (code === '') continue
    refused++
    codes.add(code)
  }
  if (tried === 0) return { fault: 'none', detail: 'no other process is visible' }
  if (refused === 0) return { ok: `those of ${tried} ${tried === 1 ? 'process' : 'processes'} can be opened` }
  const lacking = missingRights()
  const why =
    lacking.length > 0 ? `${lacking.map(name => `CAP_${name}`).join(' and ')} missing` : [...codes].join(', ')
  return {
    fault: lacking.length === 0 && 2 * refused < tried ? 'protected' : 'denied',
    detail: `those of ${refused} of ${tried} processes cannot be opened: ${why}`,
  }
}

/** '' if a file can be opened, otherwise the kernel's error code; undefined if there is nothing to open. */
function codeOf(proc: string, pid: string): string | undefined {
  try {
    // Kernel threads have no memory.
    if (isKernelThread(statFields(readFileSync(join(proc, pid, 'stat'), 'latin1'), 7))) return undefined
    for (const { range } of readMappings(proc, Number(pid))) {
      const link = join(proc, pid, 'map_files', range)
      // Opening a file of an unresponsive server would hang.
      if (mayHangAt(proc, Number(pid), link)) continue
      closeSync(openSync(link, constants.O_RDONLY | constants.O_NONBLOCK))
      return ''
    }
    return undefined
  } catch (error) {
    // Otherwise it ended, runs another program by now, or mapped something that no other process can open.
    const { code } = error as NodeJS.ErrnoException
    return code === 'EACCES' || code === 'EPERM' ? code : undefined
  }
}

/** Missing capabilities, by the kernel's rules (proc(5), capabilities(7)). */
function missingRights(): Capability[] {
  const held = heldCapabilities()
  if (held === undefined) return []
  const lacking: Capability[] = []
  if (!held.has('SYS_PTRACE')) lacking.push('SYS_PTRACE')
  if (!held.has('CHECKPOINT_RESTORE') && !held.has('SYS_ADMIN')) lacking.push('CHECKPOINT_RESTORE')
  if (!held.has('DAC_READ_SEARCH') && !held.has('DAC_OVERRIDE')) lacking.push('DAC_READ_SEARCH')
  return lacking
}

const symbolRights = capabilityHints('SYSLOG')

export const kernelSymbols = check({
  name: 'kernel symbols',
  group: 'profiles',
  summary: 'The kernel shows svc the addresses of its functions in /proc/kallsyms',
  impact: 'names of kernel functions: the frames show why they have none',
  capabilities: ['SYSLOG'],
  faults: {
    hidden: {
      state: 'limited',
      what: 'svc lacks CAP_SYSLOG, has it only in a user namespace, or a security module denies access',
      hints: {
        ...symbolRights,
        systemd: 'AmbientCapabilities=CAP_SYSLOG, and ProtectKernelLogs=no',
        config: 'agent.profiling.include_kernel: false',
      },
    },
    restricted: {
      state: 'limited',
      what: '`kernel.kptr_restrict` is 2: addresses are hidden from all users',
      hints: {
        sysctl: 'sysctl -w kernel.kptr_restrict=1',
        config: 'agent.profiling.include_kernel: false',
      },
    },
    unreadable: {
      state: 'limited',
      what: '/proc/kallsyms is not there or may not be read: the kernel was built without CONFIG_KALLSYMS, or /proc is masked',
      hints: {
        systemd: 'ProtectKernelTunables=no, ProcSubset=all',
        container: 'docker run --security-opt systempaths=unconfined',
        kubernetes: 'securityContext: {procMount: Unmasked}',
        kernel: 'run a kernel built with CONFIG_KALLSYMS=y',
      },
    },
  },
  try: ({ loaded: { config } }) => (config.agent.profiling.include_kernel ? [tryKernelSymbols('/proc')] : []),
})

/** The first symbols may have address 0, because they belong to per-CPU memory; this many bytes include others. */
const sampleBytes = 64 * 1024

/** Reads the first symbols of the /proc mounted at `proc`. */
export function tryKernelSymbols(proc: string): Finding<'hidden' | 'restricted' | 'unreadable'> {
  const path = join(proc, 'kallsyms')
  let text: string
  try {
    text = headOf(path)
  } catch (error) {
    return { fault: 'unreadable', detail: `cannot read ${path}: ${errorText(error)}` }
  }
  if (text === '') return { fault: 'unreadable', detail: `${path} is empty` }
  if (/^0*[1-9a-f][0-9a-f]* /m.test(text)) return { ok: `${path} shows addresses` }
  const level = numberIn(join(proc, 'sys/kernel/kptr_restrict'))
  if (level === 2)
    return { fault: 'restricted', detail: `${path} hides addresses: kernel.kptr_restrict is 2` }
  const lacks = heldCapabilities(proc)?.has('SYSLOG') === false
  const why = lacks ? 'CAP_SYSLOG missing' : 'caused by a user namespace or a security module'
  return { fault: 'hidden', detail: `${path} hides addresses: ${why}` }
}

function headOf(path: string): string {
  const bytes = Buffer.alloc(sampleBytes)
  const fd = openSync(path, 'r')
  try {
    let length = 0
    // The kernel returns a page at most, and less at its end.
    while (length < sampleBytes) {
      const read = readSync(fd, bytes, length, sampleBytes - length, null)
      if (read === 0) break
      length += read
    }
    return bytes.toString('latin1', 0, length)
  } finally {
    closeSync(fd)
  }
}

/** The number in a file; NaN if it cannot be read. */
function numberIn(path: string): number {
  try {
    return Number(readFileSync(path, 'latin1'))
  } catch {
    return Number.NaN
  }
}
