import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { nameFilter } from './_name-filter.ts'
import { TableFile } from './_table-file.ts'
import { collector, gauge } from './collector.ts'

const labels = { labels: ['slab'] }
/** Families in the order of the columns. */
const families = [
  gauge('slabinfo_active_objects', 'Objects of a slab that are in use.', labels),
  gauge('slabinfo_objects', 'Objects that a slab has room for.', labels),
  gauge('slabinfo_object_size_bytes', 'Size of an object of a slab.', labels),
  gauge('slabinfo_objects_per_slab', 'Objects that are allocated at once.', labels),
  gauge('slabinfo_pages_per_slab', 'Pages that are allocated at once.', labels),
]

/** Kernel memory by kind of object, from /proc/slabinfo (slabinfo(5)), which only root can read. */
export const slabinfo = collector({
  name: 'slabinfo',
  summary: 'Kernel memory by kind of object',
  source: '/proc/slabinfo',
  enabledByDefault: false,
  metrics: families,
  options: {
    slabs_include: key(regex, '.*', 'Regular expression for slabs to show.'),
    slabs_exclude: key(regex, '', 'Regular expression for slabs to exclude; empty for none.'),
  },
  start: (options, { host }) => {
    const isShown = nameFilter(options.slabs_include, options.slabs_exclude)
    const file = new TableFile(host.proc, 'slabinfo')
    return {
      collect(readings) {
        file.read().line()
        if (!file.starts('slabinfo - version: 2.')) throw file.fault('unknown version')
        while (file.line()) {
          if (file.starts('#')) continue
          const slab = file.text()
          if (!isShown(slab)) continue
          for (const family of families) readings.set(family, file.count(), slab)
          if (file.text() !== ':') throw file.fault('a line has unknown columns')
        }
      },
    }
  },
})
