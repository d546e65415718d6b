import { countedMaps, loadedPrograms } from '../../kernel/loaded.ts'
import { EbpfDebug } from '../agent/ebpf-debug.ts'
import { values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'

export const ebpf: Subsystem<EbpfDebug> = {
  name: 'eBPF debug',
  keys: ['agent.ebpf.debug'],
  create: ({ config, options: { log } }) => new EbpfDebug({ config, log }),
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  metrics: {
    ebpf_programs_loaded: values('program_type', 'eBPF programs loaded.', () =>
      sums(loadedPrograms().map(({ type }) => [type, 1])),
    ),
    // Several objects may have maps of the same name.
    ebpf_map_entries: values('map_name', 'Entries in eBPF maps.', () =>
      sums(countedMaps().map(({ name, entries }) => [name, entries])),
    ),
  },
}

function sums(counts: readonly (readonly [name: string, count: number])[]): ReadonlyMap<string, number> {
  const byName = new Map<string, number>()
  for (const [name, count] of counts) byName.set(name, (byName.get(name) ?? 0) + count)
  return byName
}
