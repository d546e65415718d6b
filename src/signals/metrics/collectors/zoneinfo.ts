import { TableFile } from './_table-file.ts'
import { collector, counter, type Family, gauge } from './collector.ts'
import { families } from './families.ts'

const labels = ['node', 'zone']

/** Field → family. */
const fields = new Map<string, Family>([
  ['nr_free_pages', pages('nr_free_pages', 'Free pages.')],
  ['min', pages('min_pages', 'Free pages below which only urgent requests are served.')],
  ['low', pages('low_pages', 'Free pages below which the kernel begins to reclaim some.')],
  ['high', pages('high_pages', 'Free pages from which on the kernel reclaims no more.')],
  ['scanned', pages('scanned_pages', 'Pages that were looked at since the last one was reclaimed.')],
  ['spanned', pages('spanned_pages', 'Pages from the first of the zone to its last, holes included.')],
  ['present', pages('present_pages', 'Pages of the zone that exist.')],
  ['managed', pages('managed_pages', 'Pages of the zone that the kernel hands out.')],
  ['nr_active_anon', pages('nr_active_anon_pages', 'Pages without a file, in use of late.')],
  ['nr_inactive_anon', pages('nr_inactive_anon_pages', 'Pages without a file, not in use of late.')],
  ['nr_isolated_anon', pages('nr_isolated_anon_pages', 'Pages without a file, taken off their list.')],
  ['nr_anon_pages', pages('nr_anon_pages', 'Pages without a file that are mapped.')],
  [
    'nr_anon_transparent_hugepages',
    pages('nr_anon_transparent_hugepages', 'Transparent huge pages without a file.'),
  ],
  ['nr_active_file', pages('nr_active_file_pages', 'Pages of files, in use of late.')],
  ['nr_inactive_file', pages('nr_inactive_file_pages', 'Pages of files, not in use of late.')],
  ['nr_isolated_file', pages('nr_isolated_file_pages', 'Pages of files, taken off their list.')],
  ['nr_file_pages', pages('nr_file_pages', 'Pages of files.')],
  ['nr_slab_reclaimable', pages('nr_slab_reclaimable_pages', 'Pages of slabs that may be reclaimed.')],
  ['nr_slab_unreclaimable', pages('nr_slab_unreclaimable_pages', 'Pages of slabs that stay.')],
  ['nr_mlock_stack', pages('nr_mlock_stack_pages', 'Locked pages that were moved off the lists.')],
  ['nr_kernel_stack', pages('nr_kernel_stacks', 'Memory of kernel stacks, in KiB.')],
  ['nr_mapped', pages('nr_mapped_pages', 'Pages of files that are mapped.')],
  ['nr_dirty', pages('nr_dirty_pages', 'Pages that have yet to be written.')],
  ['nr_writeback', pages('nr_writeback_pages', 'Pages that are being written.')],
  ['nr_unevictable', pages('nr_unevictable_pages', 'Pages that may not be reclaimed.')],
  ['nr_shmem', pages('nr_shmem_pages', 'Pages of shared memory, tmpfs included.')],
  ['nr_dirtied', events('nr_dirtied', 'Pages that were made dirty.')],
  ['nr_written', events('nr_written', 'Pages that were written.')],
  ['numa_hit', events('numa_hit', 'Pages that were found on the node that was asked for.')],
  ['numa_miss', events('numa_miss', 'Pages that were found here for want of some on another node.')],
  ['numa_foreign', events('numa_foreign', 'Pages that were asked for here and found elsewhere.')],
  ['numa_interleave', events('numa_interleave', 'Pages that were found here in turn with other nodes.')],
  ['numa_local', events('numa_local', 'Pages that went to a CPU of this node.')],
  ['numa_other', events('numa_other', 'Pages that went to a CPU of another node.')],
])

function pages(name: string, help: string): Family {
  return gauge(`zoneinfo_${name}`, help, { labels })
}

function events(name: string, help: string): Family {
  return counter(`zoneinfo_${name}_total`, help, { labels })
}

/** State of memory zones, from /proc/zoneinfo (proc(5); kernel, admin-guide/sysctl/vm.rst). */
export const zoneinfo = collector({
  name: 'zoneinfo',
  summary: 'State of memory zones',
  source: '/proc/zoneinfo',
  enabledByDefault: false,
  metrics: [...fields.values()],
  dynamic:
    'Also `zoneinfo_protection_<n>` by node and zone: pages that are kept from requests for the nth zone.',
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'zoneinfo')
    const protection = families(index =>
      gauge(`zoneinfo_protection_${index}`, `Pages that are kept from requests for zone ${index}.`, {
        labels,
      }),
    )
    return {
      collect(readings) {
        file.read()
        let node = ''
        let zone = ''
        while (file.line()) {
          const word = file.text()
          if (word === 'Node') {
            ;[node, zone] = placeOf(file)
          } else if (word === 'protection:') {
            const numbers = file.rest().replace(/[(),]/g, ' ').trim().split(/ +/)
            for (const [i, number] of numbers.entries()) {
              if (!/^\d{1,20}$/.test(number)) throw file.fault('a number is missing')
              readings.set(protection(String(i))!, Number(number), node, zone)
            }
          } else {
            const family = fields.get(word)
            if (family !== undefined) readings.set(family, file.count(), node, zone)
          }
          if (node === '') throw file.fault('the first line is not a node')
        }
        if (node === '') throw file.fault('empty file')
      },
    }
  },
})

/** `Node 0, zone   Normal` */
function placeOf(file: TableFile): readonly [node: string, zone: string] {
  const parts = /^(\d+), zone +(\w+)$/.exec(file.rest())
  if (parts === null) throw file.fault('a line has no zone')
  return [parts[1]!, parts[2]!]
}
