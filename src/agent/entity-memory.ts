import type { ContainerResources } from '../entities/container-resources.ts'
import type { Entities } from '../entities/entities.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import type { MemoryGovernor, MemoryKind } from '../lib/memory-governor.ts'
import { smallCaches, smallTables } from '../lib/small-tables.ts'
import type { Profiler } from '../profiling/profiler.ts'
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

/** Small tables all over the agent. Those that must not forget are bounded by keys and numbers of their own. */
export function governSmallTables(governor: MemoryGovernor): void {
  governor.register({
    name: 'names seen recently',
    kind: 'cache',
    bytes: () => smallCaches.bytes,
    shed: bytes => smallCaches.shed(bytes),
  })
  governor.register({
    name: 'other bounded tables',
    kind: 'intake',
    apart: true,
    bytes: () => smallTables.bytes,
    shed: () => 0,
  })
}

/** What profiles keep: stacks and their frames here, tables of symbols in their own thread. */
export function governProfiles(
  governor: MemoryGovernor,
  profiling: Pick<Profiling, 'profiler' | 'groups'>,
): void {
  const table = (
    name: string,
    kind: MemoryKind,
    bytes: (profiler: Profiler) => number,
    shed: (profiler: Profiler, bytes: number) => number,
    share?: number,
  ) =>
    governor.register({
      name,
      kind,
      ...(share !== undefined && { share }),
      bytes: () => (profiling.profiler === undefined ? 0 : bytes(profiling.profiler)),
      shed: wanted => (profiling.profiler === undefined ? 0 : shed(profiling.profiler, wanted)),
    })
  governor.register({
    name: 'processes in profiles, by program',
    kind: 'cache',
    bytes: () => profiling.groups.bytes,
    shed: () => profiling.groups.shed(),
  })
  table(
    'stacks of profiles',
    'detail',
    ({ frames }) => frames.bytes,
    ({ frames }, bytes) => frames.shed(bytes),
  )
  table(
    'counts of stacks',
    'detail',
    ({ counts }) => counts.reduce((sum, totals) => sum + totals.bytes, 0),
    ({ counts }) => counts.reduce((sum, totals) => sum + totals.shed(), 0),
  )
  table(
    'files of profiles',
    'cache',
    ({ files }) => files.bytes,
    ({ files }, bytes) => files.shed(bytes),
    // A file that is forgotten and met again is read again.
    1 / 2,
  )
  table('symbols', 'cache', ({ state }) => state?.symbolBytes ?? 0, shedSymbols)
}

/** The thread lets tables of symbols go, soon. Bytes that it has. */
function shedSymbols({ state, worker }: Profiler, bytes: number): number {
  const held = state?.symbolBytes ?? 0
  return held > 0 && worker.send({ kind: 'shed', bytes }) ? Math.min(held, bytes) : 0
}
