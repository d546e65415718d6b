import { loadObject } from '../../kernel/load-object.ts'
import { oomPrograms } from '../../signals/capture/process-events.ts'
import {
  connections,
  hostCounts,
  type KernelPart,
  processEvents,
  systemCalls,
} from '../agent/kernel-parts.ts'
import { type Check, check } from './check.ts'
import { type ProgramFault, programFaults, tryPrograms } from './programs.ts'

/** The programs of a part. */
export interface PartPrograms {
  readonly name: string
  readonly part: KernelPart
  readonly summary: string
  readonly impact: string
  readonly object: string
  /** Programs of the object that the kernel may reject without harm. */
  readonly optional?: readonly string[]
}

export const partPrograms: readonly PartPrograms[] = [
  {
    name: 'connection programs',
    part: connections,
    summary:
      'The kernel accepts the programs that count connections; they are loaded, not attached, and unloaded',
    impact: 'metrics of connections, their round-trip times, and flows',
    object: 'net',
  },
  {
    name: 'process programs',
    part: processEvents,
    summary:
      'The kernel accepts the programs that track process starts and ends; they are loaded, not attached',
    impact: 'records and counts of process starts and ends, and the names of very short-lived processes',
    object: 'process',
    optional: oomPrograms,
  },
  {
    name: 'system call programs',
    part: systemCalls,
    summary: 'The kernel accepts the programs that count system calls, if agent.ebpf.syscalls is on',
    impact: 'counts and durations of system calls',
    object: 'syscount',
  },
  {
    name: 'host programs',
    part: hostCounts,
    summary: 'The kernel accepts the programs for the host metrics of agent.nodeexporter.ebpf_enhanced',
    impact: 'host metrics of TCP round-trip times and retransmissions, and of open files by process',
    object: 'host',
  },
]

export const kernelCounts: readonly Check[] = partPrograms.map(
  ({ name, part, summary, impact, ...programs }) =>
    check<ProgramFault>({
      name,
      group: 'kernel',
      summary,
      impact,
      faults: programFaults('kernel'),
      try: ({ loaded: { config } }) => (part.off(config.agent) === undefined ? [tryPart(programs)] : []),
    }),
)

function tryPart({ object, optional = [] }: Pick<PartPrograms, 'object' | 'optional'>) {
  return tryPrograms<ProgramFault>(`${object}.bpf.o`, native => {
    loadObject(native, object, { optional }).object.close()
    return { ok: `those of the object "${object}" were loaded` }
  })
}
