import { lstatSync, statSync } from 'node:fs'
import { tryDecoder } from '../../kernel/decoder.ts'
import { refusedPrograms } from '../../kernel/loaded.ts'
import type { Finding } from '../../kernel/need.ts'
import type { StackSink } from '../../model/raw-stack.ts'
import { StackSampler } from '../../probes/stack-sampler.ts'
import { tableDirectory } from '../../profiling/unwind-cache.ts'
import { check } from './check.ts'
import { nearestWritable } from './directory.ts'
import { type ProgramFault, programFaults, tryPrograms } from './programs.ts'

type ProfileFault = ProgramFault | 'degraded' | 'no_waits'

export const profilePrograms = check({
  name: 'profile programs',
  group: 'profiles',
  summary: 'The kernel takes the programs that walk stacks; they are loaded, not attached, and let go',
  lose: 'profiles',
  faults: {
    ...programFaults('profiles'),
    degraded: {
      state: 'limited',
      what: 'the kernel refuses the programs that walk stacks by tables: stacks are walked by frame pointers only',
      lose: 'stacks of programs without frame pointers, which are cut short; names of functions; and waiting',
      hints: {
        kernel:
          'run Linux 5.10 or newer, not locked down; one that is newer: report it with the output of svc doctor --json',
      },
    },
    no_waits: {
      state: 'limited',
      what: 'the kernel refuses the program that sees threads wait, and takes all others',
      lose: 'profiles of waiting (off_cpu)',
      hints: { kernel: 'run Linux 5.19 or newer, or 5.10 to 5.17, built with BTF' },
    },
  },
  try: () => [tryProfilePrograms()],
})

/** `degraded`: as on a kernel that cannot walk by tables. */
export function tryProfilePrograms(degraded = false): Finding<ProfileFault> {
  return tryPrograms<ProfileFault>('profile.bpf.o', native => {
    // Without a kind to sample nothing is attached.
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
        return { fault: 'degraded', detail: `stacks are walked by frame pointers only: ${sampler.degraded}` }
      const [refused] = refusedPrograms('profile')
      return refused === undefined
        ? { ok: 'those that walk stacks by tables were loaded' }
        : { fault: 'no_waits', detail: `${refused.name} was refused: ${refused.refused}` }
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
  summary: 'Tables by which stacks are walked are kept in the directory unwind, beside the queue on disk',
  lose: 'some CPU time after each start, while tables are made anew',
  faults: {
    unwritable: {
      state: 'note',
      what: 'the directory cannot be made or written, so that tables are made anew at each start',
      hints: {
        any: 'run svc as root, or give it the directory: install -d -m 700 -o USER DIRECTORY',
        config: 'pipeline.export.queue.directory: a directory below one that svc may write',
        systemd: 'StateDirectory=svc',
        container: 'docker run -v svc-state:/var/lib/svc',
        kubernetes: 'a hostPath volume at /var/lib/svc',
      },
    },
    shared: {
      state: 'note',
      what: 'the directory is not that of svc’s user alone, and is not used: who may write to it could change tables',
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

/** As the cache asks for it: this user's own directory, no link to one, and nobody else's to write. */
function isOwn(directory: string): boolean {
  const stat = lstatSync(directory)
  return stat.isDirectory() && stat.uid === process.geteuid?.() && (stat.mode & 0o022) === 0
}

export const debugFiles = check({
  name: 'debug files',
  group: 'profiles',
  summary: 'Separate debug information is looked for in agent.profiling.symbols.debuginfo_dirs',
  lose: 'names of functions that stripped programs do not export',
  faults: {
    none: {
      state: 'note',
      what: 'there is none on this host, so that functions of stripped programs have names only where they are exported',
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
    const detail = asked.length === 0 ? 'no directory is configured' : `there is no ${asked.join(', no ')}`
    return [{ fault: 'none', detail }]
  },
})

export const decoder = check({
  name: 'decoder',
  group: 'profiles',
  summary:
    'The program that reads names of C++ and packed tables of symbols, svc-decode, runs without rights beside svc',
  lose: 'names of C++ as they are written in the source, and functions that only .gnu_debugdata names',
  faults: {
    absent: {
      state: 'limited',
      what: 'svc-decode does not run',
      hints: {
        package: 'install the package of svc anew; in a source tree: bash tools/setup',
        kernel: 'run a kernel with CONFIG_SECCOMP_FILTER',
        systemd: 'allow prctl in SystemCallFilter=',
        container: 'allow prctl in the seccomp profile',
      },
    },
  },
  try: async () => {
    const why = await tryDecoder()
    return [why === '' ? { ok: 'it writes a name' } : { fault: 'absent', detail: why }]
  },
})

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false // not there, or not for this user
  }
}
