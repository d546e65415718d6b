import { lstatSync, statSync } from 'node:fs'
import type { StackSink } from '../../foundation/model/raw-stack.ts'
import { tryDecoder } from '../../kernel/decoder.ts'
import { refusedPrograms } from '../../kernel/loaded.ts'
import type { Finding } from '../../kernel/need.ts'
import { StackSampler } from '../../signals/capture/stack-sampler.ts'
import { tableDirectory } from '../../signals/profiles/unwind-cache.ts'
import { check } from './check.ts'
import { nearestWritable } from './directory.ts'
import { type ProgramFault, programFaults, tryPrograms } from './programs.ts'

type ProfileFault = ProgramFault | 'degraded' | 'no_waits'

export const profilePrograms = check({
  name: 'profile programs',
  group: 'profiles',
  summary: 'The kernel accepts the programs that unwind stacks; they are loaded, not attached, and unloaded',
  impact: 'profiles',
  faults: {
    ...programFaults('profiles'),
    degraded: {
      state: 'limited',
      what: 'the kernel rejects the programs that unwind with tables: stacks are unwound by frame pointers only',
      impact: 'complete stacks of programs without frame pointers; function names; and wait profiles',
      hints: {
        kernel:
          'run Linux 5.10 or newer without lockdown; if it is newer, report it with the output of svc doctor --json',
      },
    },
    no_waits: {
      state: 'limited',
      what: 'the kernel rejects only the program that sees threads wait',
      impact: 'wait profiles (off_cpu)',
      hints: { kernel: 'run Linux 5.19 or newer, or 5.10 to 5.17, built with BTF' },
    },
  },
  try: () => [tryProfilePrograms()],
})

/** `degraded`: as on a kernel that cannot unwind by tables. */
export function tryProfilePrograms(degraded = false): Finding<ProfileFault> {
  return tryPrograms<ProfileFault>('profile.bpf.o', native => {
    // Without a kind to sample, nothing is attached.
    const settings = {
      sampleRate: 1,
      cpu: false,
      memory: false,
      offCpu: false,
      includeKernel: false,
      degraded,
    }
    const sampler = new StackSampler(native, settings, nobody)
    try {
      if (sampler.degraded !== undefined)
        return { fault: 'degraded', detail: `stacks are unwound by frame pointers only: ${sampler.degraded}` }
      const [refused] = refusedPrograms('profile')
      return refused === undefined
        ? { ok: 'those that unwind with tables were loaded' }
        : { fault: 'no_waits', detail: `${refused.name} was rejected: ${refused.refused}` }
    } finally {
      sampler.close()
    }
  })
}

const nobody: StackSink = {
  userStack: () => undefined,
  kernelStack: () => undefined,
  unknownFile: () => undefined,
  unknownRuntime: () => undefined,
}

export const tableCache = check({
  name: 'table cache',
  group: 'profiles',
  summary: 'Unwind tables are kept in the directory unwind, next to the queue on disk',
  impact: 'some CPU time after each start, when tables are rebuilt',
  faults: {
    unwritable: {
      state: 'note',
      what: 'the directory cannot be created or written, so tables are rebuilt at each start',
      hints: {
        any: 'run svc as root, or give it the directory: install -d -m 700 -o USER DIRECTORY',
        config: 'pipeline.export.queue.directory: a subdirectory of one that svc may write',
        systemd: 'StateDirectory=svc',
        container: 'docker run -v svc-state:/var/lib/svc',
        kubernetes: 'a hostPath volume at /var/lib/svc',
      },
    },
    shared: {
      state: 'note',
      what: 'the directory is not owned by the user of svc alone, so it is not used: others could change the tables',
      hints: { any: 'chown USER DIRECTORY && chmod 700 DIRECTORY' },
    },
  },
  try: ({ loaded: { config } }) => {
    const directory = tableDirectory(config.pipeline.export.queue.directory)
    const found = nearestWritable(directory)
    if ('refused' in found) return [{ fault: 'unwritable', detail: `tables are not kept: ${found.refused}` }]
    if (found.existing === directory && !isOwn(directory))
      return [{ fault: 'shared', detail: `tables are not kept: others may write to ${directory}` }]
    return [{ ok: directory }]
  },
})

/** As the cache requires: owned by this user, not a symbolic link, and not writable by others. */
function isOwn(directory: string): boolean {
  const stat = lstatSync(directory)
  return stat.isDirectory() && stat.uid === process.geteuid?.() && (stat.mode & 0o022) === 0
}

export const debugFiles = check({
  name: 'debug files',
  group: 'profiles',
  summary: 'Separate debug information is read from agent.profiling.symbols.debuginfo_dirs',
  impact: 'names of functions that stripped programs do not export',
  faults: {
    none: {
      state: 'note',
      what: 'none on this host, so stripped programs have names only for exported functions',
      hints: {
        package:
          'apt-get install libc6-dbg and the -dbgsym packages of programs, or dnf debuginfo-install PROGRAM',
        container: 'docker run -v /usr/lib/debug:/usr/lib/debug:ro',
        kubernetes: 'volumes: [{name: debug, hostPath: {path: /usr/lib/debug}}], mounted at /usr/lib/debug',
        config: 'agent.profiling.symbols.debuginfo_dirs: [/usr/lib/debug]',
      },
    },
  },
  try: ({ loaded: { config } }) => {
    const asked = config.agent.profiling.symbols.debuginfo_dirs
    const found = asked.filter(isDirectory)
    if (found.length > 0) return [{ ok: found.join(', ') }]
    const detail = asked.length === 0 ? 'no directory is configured' : `not found: ${asked.join(', ')}`
    return [{ fault: 'none', detail }]
  },
})

export const decoder = check({
  name: 'decoder',
  group: 'profiles',
  summary:
    'svc-decode, the program that demangles C++ names and unpacks symbol tables, runs without privileges next to svc',
  impact: 'demangled C++ names, and functions that only .gnu_debugdata names',
  faults: {
    absent: {
      state: 'limited',
      what: 'svc-decode cannot run',
      hints: {
        package: 'reinstall the svc package; in a source tree: bash tools/setup',
        kernel: 'run a kernel with CONFIG_SECCOMP_FILTER',
        systemd: 'allow prctl in SystemCallFilter=',
        container: 'allow prctl in the seccomp profile',
      },
    },
  },
  try: async () => {
    const why = await tryDecoder()
    return [why === '' ? { ok: 'it decoded a name' } : { fault: 'absent', detail: why }]
  },
})

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false // missing, or not accessible to this user
  }
}
