// The tracepoints of system calls, for tests on hosts that have not mounted tracefs: in a mount namespace of their own.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const probe = '/sys/kernel/tracing/events/syscalls/sys_enter_read/format'

/** True where this process sees the tracepoints. */
export const hasTracefs = existsSync(probe)

/** What a command line is passed to, so that its program sees them. */
export const withTracefs: readonly string[] = hasTracefs
  ? []
  : ['unshare', '-m', 'sh', '-c', 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', 'sh']

function withoutSyscallTracepoints(): string | false {
  if (process.getuid?.() !== 0) return 'the tracepoints of system calls need root'
  if (hasTracefs) return false
  const [command, ...args] = [...withTracefs, 'test', '-e', probe]
  return spawnSync(command!, args).status === 0
    ? false
    : 'this kernel has no tracepoints of system calls, or tracefs may not be mounted'
}

/** Why tests with them cannot run here, for `skip`; false where they can. */
export const withoutTracepoints: string | false = withoutSyscallTracepoints()
