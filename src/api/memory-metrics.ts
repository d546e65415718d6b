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
  one('memory_limit_bytes', 'Memory that the agent may take: limits.memory.', 'gauge', stats => stats.limit)
  one(
    'memory_anonymous_bytes',
    'Memory of the process without pages of files.',
    'gauge',
    stats => stats.anonymous,
  )
  one(
    'memory_heap_live_bytes',
    'Heap of the runtime after its last full collection.',
    'gauge',
    ({ heap }) => heap.live,
  )
  one(
    'memory_heap_limit_bytes',
    'Heap beyond which the runtime ends the process.',
    'gauge',
    ({ heap }) => heap.limit,
  )
  one(
    'memory_pressure',
    'How short memory is: 0 enough, 1 caches shrink, 2 detail is left out, 3 nothing new is taken in but counted.',
    'gauge',
    stats => stats.pressure,
  )
  one('memory_shortages_total', 'How often memory began to be short.', 'counter', stats => stats.shortages)
  table('memory_table_bytes', 'Memory of a table of what was seen.', 'gauge', ({ bytes }) => bytes)
  table('memory_table_limit_bytes', 'Memory that a table may hold.', 'gauge', ({ limit }) => limit)
  table(
    'memory_table_shed_bytes_total',
    'Memory that a table gave back for want of it.',
    'counter',
    ({ shed }) => shed,
  )
}
