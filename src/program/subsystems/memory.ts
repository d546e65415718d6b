import type { TableState } from '../../foundation/lib/memory-governor.ts'
import { smallCaches, smallTables } from '../../foundation/lib/small-tables.ts'
import { Memory } from '../agent/memory.ts'
import { type Metric, value, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'

const hint = 'raise limits.memory; svc status shows the memory usage'

export const memory: Subsystem<Memory> = {
  name: 'memory',
  create: ({ config, options: { log } }) => {
    const own = new Memory(config.limits.memory, log)
    own.governor.register({
      name: 'names seen recently',
      kind: 'cache',
      bytes: () => smallCaches.bytes,
      shed: bytes => smallCaches.shed(bytes),
    })
    // Tables that must not forget are limited by their own keys and numbers.
    own.governor.register({
      name: 'other bounded tables',
      kind: 'intake',
      apart: true,
      bytes: () => smallTables.bytes,
      shed: () => 0,
    })
    return own
  },
  close: own => own.stop(),
  state: ({ shortage: reason }) => ({
    state: 'ok',
    faults: reason === undefined ? [] : [{ subsystem: 'memory', reason, hint }],
  }),
  metrics: {
    memory_limit_bytes: value('Memory limit of the agent: limits.memory.', ({ state }) => state.limit),
    memory_anonymous_bytes: value(
      'Memory of the process, without file pages.',
      ({ state }) => state.anonymous,
    ),
    memory_heap_live_bytes: value(
      'Heap of the runtime after the last full garbage collection.',
      ({ state }) => state.heap.live,
    ),
    memory_heap_limit_bytes: value(
      'Heap limit at which the runtime ends the process.',
      ({ state }) => state.heap.limit,
    ),
    memory_pressure: value(
      'Memory pressure: 0 none, 1 caches shrink, 2 detail is left out, 3 new data is counted only.',
      ({ state }) => state.pressure,
    ),
    memory_shortages_total: value('Times that memory became short.', ({ state }) => state.shortages),
    memory_table_bytes: tables('Memory of a table of observed data.', ({ bytes }) => bytes),
    memory_table_limit_bytes: tables('Memory limit of a table.', ({ limit }) => limit),
    memory_table_shed_bytes_total: tables(
      'Memory that a table released because memory was short.',
      ({ released: shed }) => shed,
    ),
  },
}

function tables(help: string, read: (table: TableState) => number): Metric<Memory> {
  return values('table', help, ({ state }) =>
    state.tables.largest.map(table => [table.name, read(table)] as const),
  )
}
