import { readFileSync } from 'node:fs'
import type { Config } from '../../config/index.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'
import { oomPrograms } from '../../probes/process-events.ts'
import { type Check, check } from './check.ts'
import { type ProgramFault, programFaults, tryPrograms } from './programs.ts'

/** What the kernel counts beside requests: each part is an object of its own, which runs or fails by itself. */
export interface KernelPart {
  readonly name: string
  /** As the agent calls it in `/status` and in its log. */
  readonly subsystem: string
  readonly summary: string
  readonly lose: string
  readonly object: string
  /** Programs of the object that a kernel may refuse without harm. */
  readonly optional?: readonly string[]
  readonly wanted: (ebpf: Config['agent']['ebpf']) => boolean
}

export const kernelParts: readonly KernelPart[] = [
  {
    name: 'connection programs',
    subsystem: 'connections',
    summary:
      'The kernel takes the programs that count connections; they are loaded, not attached, and let go',
    lose: 'metrics of connections, their round-trip times, and flows',
    object: 'net',
    wanted: ({ network }) => network.enabled && (network.tcp_metrics || network.flows),
  },
  {
    name: 'process programs',
    subsystem: 'process events',
    summary: 'The kernel takes the programs that see processes start and end; they are loaded, not attached',
    lose: 'records and counts of programs that start and end, and who a process was that lived for less than a moment',
    object: 'process',
    optional: oomPrograms,
    wanted: ({ process }) => process.enabled,
  },
  {
    name: 'system call programs',
    subsystem: 'system calls',
    summary: 'The kernel takes the programs that count system calls, once agent.ebpf.syscalls asks for them',
    lose: 'counts and durations of system calls',
    object: 'syscount',
    wanted: ({ syscalls }) => syscalls.enabled,
  },
]

export const kernelCounts: readonly Check[] = kernelParts.map(({ name, summary, lose, wanted, ...part }) =>
  check<ProgramFault>({
    name,
    group: 'kernel',
    summary,
    lose,
    faults: programFaults('kernel'),
    try: ({ loaded: { config } }) => (wanted(config.agent.ebpf) ? [tryPart(part)] : []),
  }),
)

function tryPart({ object, optional = [] }: Pick<KernelPart, 'object' | 'optional'>) {
  return tryPrograms<ProgramFault>(`${object}.bpf.o`, (native, path) => {
    BpfObject.load(native, readFileSync(path), { name: object, optional }).close()
    return { ok: `those of the object "${object}" were loaded` }
  })
}
