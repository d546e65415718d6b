import type { TableState } from '../lib/memory-governor.ts'
import type { Registry } from '../lib/registry.ts'

/** The agent's memory, in bytes. */
export interface MemoryStats {
  readonly limit: number
  readonly anonymous: number
  readonly heap: { readonly live: number; readonly limit: number }
  readonly pressure: number
  readonly shortages: number
  readonly tables: { readonly limit: number; readonly largest: readonly TableState[] }
}

export function memoryMetrics(
  registry: Registry,
  named: (name: string) => string,
  memory: () => MemoryStats,
): void {
  const one = (
    name: string,
    help: string,
    type: 'gauge' | 'counter',
    value: (stats: MemoryStats) => number,
  ) => registry.collector(named(name), help, type, [], emit => emit(value(memory())))
  const table = (
    name: string,
    help: string,
    type: 'gauge' | 'counter',
    value: (table: TableState) => number,
  ) =>
    registry.collector(named(name), help, type, ['table'], emit => {
      for (const each of memory().tables.largest) emit(value(each), each.name)
    })
  one('memory_limit_bytes', 'Memory limit of the agent: limits.memory.', 'gauge', stats => stats.limit)
  one(
    'memory_anonymous_bytes',
    'Memory of the process, without file pages.',
    'gauge',
    stats => stats.anonymous,
  )
  one(
    'memory_heap_live_bytes',
    'Heap of the runtime after the last full garbage collection.',
    'gauge',
    ({ heap }) => heap.live,
  )
  one(
    'memory_heap_limit_bytes',
    'Heap limit at which the runtime ends the process.',
    'gauge',
    ({ heap }) => heap.limit,
  )
  one(
    'memory_pressure',
    'Memory pressure: 0 none, 1 caches shrink, 2 detail is left out, 3 new data is counted only.',
    'gauge',
    stats => stats.pressure,
  )
  one('memory_shortages_total', 'Times that memory became short.', 'counter', stats => stats.shortages)
  table('memory_table_bytes', 'Memory of a table of observed data.', 'gauge', ({ bytes }) => bytes)
  table('memory_table_limit_bytes', 'Memory limit of a table.', 'gauge', ({ limit }) => limit)
  table(
    'memory_table_shed_bytes_total',
    'Memory that a table released because memory was short.',
    'counter',
    ({ shed }) => shed,
  )
}
