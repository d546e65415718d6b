import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, counter, type Family, type Readings } from './collector.ts'

const column = (name: string, help: string): Family =>
  counter(`xfs_${name}_total`, help, { labels: ['device'] })

function btree(name: string, what: string): readonly Family[] {
  return [
    column(`${name}_lookups`, `Lookups in the B-tree of ${what}.`),
    column(`${name}_compares`, `Comparisons in the B-tree of ${what}.`),
    column(`${name}_records_inserted`, `Records put into the B-tree of ${what}.`),
    column(`${name}_records_deleted`, `Records taken out of the B-tree of ${what}.`),
  ]
}

/** Counters by the first word of their line, in order (fs/xfs/xfs_stats.h). */
const lines: ReadonlyMap<string, readonly Family[]> = new Map(
  Object.entries({
    extent_alloc: [
      column('extent_allocation_extents_allocated', 'Extents that were allocated.'),
      column('extent_allocation_blocks_allocated', 'Blocks that were allocated.'),
      column('extent_allocation_extents_freed', 'Extents that were freed.'),
      column('extent_allocation_blocks_freed', 'Blocks that were freed.'),
    ],
    abt: btree('allocation_btree', 'free space'),
    blk_map: [
      column('block_mapping_reads', 'Mappings of blocks for reading.'),
      column('block_mapping_writes', 'Mappings of blocks for writing.'),
      column('block_mapping_unmaps', 'Removals of mapped blocks.'),
      column('block_mapping_extent_list_insertions', 'Extents put into lists of extents.'),
      column('block_mapping_extent_list_deletions', 'Extents taken out of lists of extents.'),
      column('block_mapping_extent_list_lookups', 'Lookups in lists of extents.'),
      column('block_mapping_extent_list_compares', 'Comparisons in lists of extents.'),
    ],
    bmbt: btree('block_map_btree', 'block maps'),
    dir: [
      column('directory_operation_lookup', 'Lookups of names that the cache of names did not know.'),
      column('directory_operation_create', 'Directory entries that were made.'),
      column('directory_operation_remove', 'Directory entries that were removed.'),
      column('directory_operation_getdents', 'Listings of directories.'),
    ],
    ig: [
      column('inode_operation_attempts', 'Lookups in the cache of inodes.'),
      column('inode_operation_found', 'Lookups that found their inode in the cache.'),
      column('inode_operation_recycled', 'Lookups that found an inode which was about to go.'),
      column('inode_operation_missed', 'Lookups that did not find their inode in the cache.'),
      column('inode_operation_duplicates', 'Inodes that somebody else had put into the cache meanwhile.'),
      column('inode_operation_reclaims', 'Inodes that were removed from the cache.'),
      column('inode_operation_attribute_changes', 'Changes of attributes of inodes.'),
    ],
    rw: [column('write_calls', 'Calls of write(2).'), column('read_calls', 'Calls of read(2).')],
    vnodes: [
      column('vnode_active', 'Vnodes in use.'),
      column('vnode_allocate', 'Vnodes that were allocated.'),
      column('vnode_get', 'Vnodes that were asked for.'),
      column('vnode_hold', 'Vnodes that were held.'),
      column('vnode_release', 'Vnodes that were let go.'),
      column('vnode_reclaim', 'Vnodes that were reclaimed.'),
      column('vnode_remove', 'Vnodes that were removed.'),
    ],
  }),
)

/** Counters of each mounted XFS, from /sys/fs/xfs/<device>/stats/stats. */
export const xfs = collector({
  name: 'xfs',
  summary: 'XFS file systems',
  source: '/sys/fs/xfs',
  enabledByDefault: true,
  metrics: [...lines.values()].flat(),
  start: (_options, { host: { sys } }) => {
    const scan = new Scanner(Buffer.alloc(0))
    return {
      collect(readings) {
        for (const device of sys.list('fs/xfs')) {
          const path = `fs/xfs/${device}/stats/stats`
          if (!sys.exists(path)) continue
          if (!show(scan.reset(sys.bytes(path)), device, readings))
            throw new Error(`cannot read ${sys.at(path)}: not the counters of an XFS`)
        }
      },
    }
  },
})

/** Shows all lines. False if a line was invalid, or none was known. */
function show(scan: Scanner, device: string, readings: Readings): boolean {
  let known = 0
  while (scan.line()) {
    const columns = lines.get(scan.text())
    if (columns === undefined) continue
    known++
    for (const family of columns) {
      const value = scan.number()
      if (Number.isNaN(value)) return false
      readings.set(family, value, device)
    }
  }
  return known > 0
}
