import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../foundation/lib/logger.ts'
import { isKernelThread, statFields } from '../foundation/lib/process-stat.ts'
import { heldCapabilities } from './capabilities.ts'
import { capabilityHints, type Finding, need } from './need.ts'

/** Inode of the initial pid namespace, the same on every machine (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
const hostPidNamespace = 'pid:[4026531836]'

const shortNames = 'service names: processes have only their short name'

/** Host pids, as the kernel reports them and /proc must use them. */
export const hostPid = need({
  name: 'host pid namespace',
  group: 'processes',
  summary: 'svc sees the processes of the host under the pids that the kernel uses',
  impact: shortNames,
  faults: {
    own: {
      state: 'limited',
      what: 'svc runs in its own pid namespace, as containers do',
      hints: {
        any: 'use the host’s pid namespace (docker run --pid=host, in Kubernetes hostPID: true)',
        systemd: 'PrivatePIDs=no',
        container: 'docker run --pid=host',
        kubernetes: 'hostPID: true',
      },
    },
    unreadable: {
      state: 'unknown',
      what: 'the link /proc/self/ns/pid cannot be read',
      hints: { any: 'mount -t proc proc /proc' },
    },
  },
  try: () => {
    let namespace: string
    try {
      namespace = readlinkSync('/proc/self/ns/pid')
    } catch (error) {
      return { fault: 'unreadable', detail: `cannot read /proc/self/ns/pid: ${errorText(error)}` }
    }
    return namespace === hostPidNamespace
      ? { ok: 'pids are those of the host' }
      : {
          fault: 'own',
          detail: 'svc runs in its own pid namespace, where the kernel’s pids are not valid',
        }
  },
})

const access = capabilityHints('SYS_PTRACE', 'DAC_READ_SEARCH')

/** Data that names a service: executable, working directory and environment of processes of all users. */
export const foreignProcesses = need({
  name: 'processes of others',
  group: 'processes',
  summary:
    'svc reads the executable, working directory and environment of other users’ processes; checked on the running ones',
  impact:
    'service names: these processes are named after their command line, without their OTEL_SERVICE_NAME',
  capabilities: ['SYS_PTRACE', 'DAC_READ_SEARCH'],
  faults: {
    denied: {
      state: 'limited',
      what: 'the kernel denies access; the AppArmor profile of Docker and Kubernetes does so even with the capabilities',
      hints: {
        ...access,
        container: `${access.container} --security-opt apparmor=unconfined`,
        kubernetes:
          'securityContext: {runAsUser: 0, capabilities: {add: [SYS_PTRACE, DAC_READ_SEARCH]}, appArmorProfile: {type: Unconfined}}',
      },
    },
    hidden: {
      state: 'limited',
      what: '/proc is mounted with `hidepid`, or systemd’s ProtectProc= does so, and svc lacks CAP_SYS_PTRACE',
      impact: shortNames,
      hints: {
        any: 'mount -o remount,hidepid=0 /proc',
        systemd: 'ProtectProc=default, or AmbientCapabilities=CAP_SYS_PTRACE',
        container: 'docker run --user=0 --cap-add=SYS_PTRACE',
        kubernetes: 'securityContext: {runAsUser: 0, capabilities: {add: [SYS_PTRACE]}}',
      },
    },
    protected: {
      state: 'note',
      what: 'svc has the permission, but a security module protects single processes',
      hints: { any: 'none needed: these processes are named after their command line' },
    },
    none: {
      state: 'unknown',
      what: 'no process of another user is visible, so this cannot be checked',
      hints: { any: 'fix the pid namespace first, or rerun svc doctor processes later' },
    },
  },
  try: () => tryProcesses('/proc'),
})

/** Maximum processes to try. */
const most = 256
const parts = ['exe', 'cwd', 'environ'] as const

/** Tries to read the data that the agent reads, for processes of other users in the /proc at `proc`. */
export function tryProcesses(proc: string): Finding<'denied' | 'hidden' | 'protected' | 'none'> {
  const hidden = hiding(proc)
  const denied = new Map<(typeof parts)[number], number>()
  let tried = 0
  let refused = 0
  for (const pid of others(proc)) {
    if (tried === most) break
    const codes = parts.map(part => codeOf(join(proc, pid, part)))
    // It exited.
    if (codes.includes('ENOENT') || codes.includes('ESRCH')) continue
    tried++
    if (codes.some(code => code !== '')) refused++
    for (const [i, part] of parts.entries())
      if (codes[i] !== '') denied.set(part, (denied.get(part) ?? 0) + 1)
  }
  if (hidden !== '')
    return { fault: 'hidden', detail: `${proc} is mounted with ${hidden}: other users’ processes are hidden` }
  if (tried === 0) return { fault: 'none', detail: 'no process of another user is visible' }
  if (refused === 0) return { ok: `${tried} other ${tried === 1 ? 'process' : 'processes'} can be read` }
  return {
    fault: mayRead() && 2 * refused < tried ? 'protected' : 'denied',
    detail: `${refused} of ${tried} other processes cannot be read: ${[...denied.keys()].join(', ')}`,
  }
}

/** True if this process has the required capabilities, as far as the kernel's own rules go. */
function mayRead(): boolean {
  const held = heldCapabilities()
  return held?.has('SYS_PTRACE') === true && (held.has('DAC_READ_SEARCH') || held.has('DAC_OVERRIDE'))
}

/** Pids of other users' processes, without kernel threads. */
function* others(proc: string): Generator<string> {
  for (const pid of readdirSync(proc)) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue
    try {
      // Root's own processes count if root lacks the capability: init has more capabilities than a container's root.
      if (process.geteuid?.() !== 0 && statSync(join(proc, pid)).uid === process.geteuid?.()) continue
      // Do not read their command lines: a process may block readers forever (process-strings.ts).
      if (isKernelThread(statFields(readFileSync(join(proc, pid, 'stat'), 'latin1'), 7))) continue
    } catch {
      continue // it exited, or is hidden, which is reported separately
    }
    yield pid
  }
}

/** The mount option that hides processes from this one; '' if process 1 is visible or no option is known. */
function hiding(proc: string): string {
  try {
    readFileSync(join(proc, '1/stat'))
    return ''
  } catch {
    // The last mount at a path is the visible one.
    const mounts = readFileSync(join(proc, 'self/mountinfo'), 'latin1').split('\n')
    const mount = mounts.findLast(line => line.split(' ', 5)[4] === proc) ?? ''
    const option = /\bhidepid=(\w+)/.exec(mount)?.[0] ?? ''
    return option === 'hidepid=0' || option === 'hidepid=off' ? '' : option
  }
}

/** '' if it is readable, otherwise the error's code. Permission is checked on open. */
function codeOf(path: string): string {
  try {
    if (path.endsWith('/environ')) closeSync(openSync(path, 'r'))
    else readlinkSync(path)
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
