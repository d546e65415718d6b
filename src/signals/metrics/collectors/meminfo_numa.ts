import { TableFile } from './_table-file.ts'
import { collector, counter, gauge } from './collector.ts'
import { families } from './families.ts'

const directory = 'devices/system/node'

/** Memory usage by NUMA node, from /sys/devices/system/node (kernel, admin-guide/numastat.rst). */
export const meminfo_numa = collector({
  name: 'meminfo_numa',
  summary: 'Memory usage by NUMA node',
  source: '/sys/devices/system/node',
  enabledByDefault: false,
  metrics: [],
  dynamic: 'One metric for each field of `meminfo` and `numastat` of the nodes; sizes are in bytes.',
  start: (_options, { host: { sys } }) => {
    const labels = ['node']
    const sizes = families(name =>
      gauge(`memory_numa_${name}`, `The field ${name} of a node's meminfo, in bytes.`, {
        labels,
        unit: 'By',
      }),
    )
    const counts = families(name =>
      gauge(`memory_numa_${name}`, `The field ${name} of a node's meminfo.`, { labels }),
    )
    const allocations = families(name =>
      counter(`memory_numa_${name}_total`, `The field ${name} of a node's numastat, in pages.`, { labels }),
    )
    return {
      collect(readings) {
        for (const name of sys.list(directory)) {
          const node = /^node(\d+)$/.exec(name)?.[1]
          if (node === undefined) continue
          const memory = new TableFile(sys, `${directory}/${name}/meminfo`).read()
          if (!memory.line()) throw memory.fault('empty file')
          do {
            memory.skip(2) // "Node 0"
            const field = fieldOf(memory, /^(\w+)(?:\((\w+)\))?:$/)
            const value = memory.count()
            if (memory.done) readings.set(counts(field)!, value, node)
            else if (memory.starts('kB')) readings.set(sizes(field)!, value * 1024, node)
            else throw memory.fault('a field has an unknown unit')
          } while (memory.line())
          const numastat = new TableFile(sys, `${directory}/${name}/numastat`).read()
          if (!numastat.line()) throw numastat.fault('empty file')
          do {
            const field = fieldOf(numastat, /^(\w+)$/)
            readings.set(allocations(field)!, numastat.count(), node)
          } while (numastat.line())
        }
      },
    }
  },
})

function fieldOf(file: TableFile, pattern: RegExp): string {
  const parts = pattern.exec(file.text())
  if (parts === null) throw file.fault('a line has no field name')
  return parts[2] === undefined ? parts[1]! : `${parts[1]}_${parts[2]}`
}
