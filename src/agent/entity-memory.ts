import type { ContainerResources } from '../entities/container-resources.ts'
import type { Entities } from '../entities/entities.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import type { MemoryGovernor } from '../lib/memory-governor.ts'
import type { Profiling } from './profiling.ts'

export interface EntityTables {
  readonly processes: ProcessTable
  /** Those that profiles meet. */
  readonly profiled: ProcessTable
  readonly entities: Entities
  readonly resources: ContainerResources
}

/** Has what is known of processes, containers and pods give back memory when it is short. */
export function governEntities(
  governor: MemoryGovernor,
  { processes, profiled, entities, resources }: EntityTables,
): void {
  const detail = (name: string, table: { readonly bytes: number; shed(bytes: number): number }) =>
    governor.register({ name, kind: 'detail', bytes: () => table.bytes, shed: bytes => table.shed(bytes) })
  detail('processes', processes)
  detail('processes in profiles', profiled)
  detail('containers and pods', entities)
  detail('resources of containers', resources)
}

/** What profiles keep: stacks and their frames here, tables of symbols in their own thread. */
export function governProfiles(
  governor: MemoryGovernor,
  profiling: Pick<Profiling, 'profiler' | 'groups'>,
): void {
  governor.register({
    name: 'processes in profiles, by program',
    kind: 'cache',
    bytes: () => profiling.groups.bytes,
    shed: () => profiling.groups.shed(),
  })
  governor.register({
    name: 'stacks of profiles',
    kind: 'detail',
    bytes: () => profiling.profiler?.frames.bytes ?? 0,
    shed: bytes => profiling.profiler?.frames.shed(bytes) ?? 0,
  })
  governor.register({
    name: 'symbols',
    kind: 'cache',
    bytes: () => profiling.profiler?.state?.symbolBytes ?? 0,
    shed: bytes => profiling.profiler?.shedSymbols(bytes) ?? 0,
  })
}
