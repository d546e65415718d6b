import type { FamilyOptions, OtelName } from '../../../foundation/model/collector.ts'
import { TableFile } from './_table-file.ts'
import { collector, gauge } from './collector.ts'
import { families } from './families.ts'

/** Fields in the semantic conventions. Their value `used` is the difference of two of these. */
const conventions: Readonly<Record<string, OtelName>> = {
  'MemTotal:': memory('system.memory.limit'),
  'MemFree:': memory('system.memory.usage', { 'system.memory.state': 'free' }),
  'Buffers:': memory('system.memory.usage', { 'system.memory.state': 'buffers' }),
  'Cached:': memory('system.memory.usage', { 'system.memory.state': 'cached' }),
  'MemAvailable:': memory('system.memory.linux.available'),
  'Shmem:': memory('system.memory.linux.shared'),
  'SReclaimable:': memory('system.memory.linux.slab.usage', {
    'system.memory.linux.slab.state': 'reclaimable',
  }),
  'SUnreclaim:': memory('system.memory.linux.slab.usage', {
    'system.memory.linux.slab.state': 'unreclaimable',
  }),
  'SwapFree:': memory('system.paging.usage', { 'system.paging.state': 'free' }),
  'Hugepagesize:': memory('system.memory.linux.hugepages.page_size'),
  'HugePages_Total:': memory('system.memory.linux.hugepages.limit', {}, '{page}'),
  'HugePages_Free:': memory(
    'system.memory.linux.hugepages.usage',
    { 'system.memory.linux.hugepages.state': 'free' },
    '{page}',
  ),
  'HugePages_Rsvd:': memory('system.memory.linux.hugepages.reserved', {}, '{page}'),
  'HugePages_Surp:': memory('system.memory.linux.hugepages.surplus', {}, '{page}'),
}

function memory(name: string, constant: Readonly<Record<string, string>> = {}, unit = 'By'): OtelName {
  return { name, unit, kind: 'updowncounter', constant }
}

function options(field: string): FamilyOptions {
  const otel = conventions[field]
  return otel === undefined ? {} : { otel }
}

/** Memory usage, from /proc/meminfo (proc(5)): all of its fields. */
export const meminfo = collector({
  name: 'meminfo',
  summary: 'Memory usage',
  source: '/proc/meminfo',
  enabledByDefault: true,
  metrics: [],
  dynamic: 'One metric for each field of /proc/meminfo, in bytes where its name ends so.',
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'meminfo')
    const nameOf = (field: string) => {
      // `Active(anon):` and similar.
      const parts = /^(\w+)(?:\((\w+)\))?:$/.exec(field)
      if (parts === null) throw file.fault('a line does not start with a field name')
      return parts[2] === undefined ? `memory_${parts[1]}` : `memory_${parts[1]}_${parts[2]}`
    }
    const help = (field: string) => `The field ${field.slice(0, -1)} of /proc/meminfo.`
    const sizes = families(field => gauge(`${nameOf(field)}_bytes`, help(field), options(field)))
    const counts = families(field => gauge(nameOf(field), help(field), options(field)))
    return {
      collect(readings) {
        file.read()
        let found = false
        while (file.line()) {
          const field = file.text()
          const value = file.count()
          if (file.done) readings.set(counts(field)!, value)
          else if (file.starts('kB')) readings.set(sizes(field)!, value * 1024)
          else throw file.fault('a field has an unknown unit')
          found = true
        }
        if (!found) throw file.fault('empty file')
      },
    }
  },
})
