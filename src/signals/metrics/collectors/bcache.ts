import { boolean } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { textAt } from './_small-file.ts'
import { collector, counter, type Family, gauge, type Readings, type Tree } from './collector.ts'

type Files = readonly (readonly [file: string, family: Family, factor?: number])[]

const root = 'fs/bcache'
const ofSet = { labels: ['uuid'] }
const ofBacking = { labels: ['backing_device', 'uuid'] }
const ofCache = { labels: ['cache_device', 'uuid'] }

/** Files of a cache set (Documentation/admin-guide/bcache.rst). */
const setFiles: Files = [
  [
    'average_key_size',
    gauge('bcache_average_key_size_sectors', 'Mean size of the data of a key, in sectors.', {
      ...ofSet,
      unit: '{sector}',
    }),
  ],
  ['btree_cache_size', gauge('bcache_btree_cache_size_bytes', 'Memory of the cache of B-tree nodes.', ofSet)],
  [
    'cache_available_percent',
    gauge('bcache_cache_available_percent', 'Part of the cache that holds no dirty data.', ofSet),
  ],
  ['congested', gauge('bcache_congested', 'How congested the cache is.', ofSet)],
  [
    'root_usage_percent',
    gauge('bcache_root_usage_percent', 'Part of the root of the B-tree that is in use.', ofSet),
  ],
  ['tree_depth', gauge('bcache_tree_depth', 'Levels of the B-tree below its root.', ofSet)],
  [
    'internal/active_journal_entries',
    gauge('bcache_active_journal_entries', 'Entries of the journal that are newer than the B-tree.', ofSet),
  ],
  ['internal/btree_nodes', gauge('bcache_btree_nodes', 'Nodes of the B-tree.', ofSet)],
  [
    'internal/btree_read_average_duration_us',
    gauge('bcache_btree_read_average_duration_seconds', 'Mean time of a read of the B-tree.', ofSet),
    1e-9,
  ],
  [
    'internal/cache_read_races',
    counter(
      'bcache_cache_read_races_total',
      'Reads from the cache whose bucket was used anew meanwhile.',
      ofSet,
    ),
  ],
]

const backingFiles: Files = [
  ['dirty_data', gauge('bcache_dirty_data_bytes', 'Dirty data of a backing device in the cache.', ofBacking)],
  [
    'stats_total/bypassed',
    counter('bcache_bypassed_bytes_total', 'Bytes read and written past the cache.', ofBacking),
  ],
  [
    'stats_total/cache_hits',
    counter('bcache_cache_hits_total', 'Requests that found their data in the cache.', ofBacking),
  ],
  [
    'stats_total/cache_misses',
    counter('bcache_cache_misses_total', 'Requests that did not find their data in the cache.', ofBacking),
  ],
  [
    'stats_total/cache_bypass_hits',
    counter(
      'bcache_cache_bypass_hits_total',
      'Requests past the cache that would have found their data there.',
      ofBacking,
    ),
  ],
  [
    'stats_total/cache_bypass_misses',
    counter(
      'bcache_cache_bypass_misses_total',
      'Requests past the cache that would not have found their data there.',
      ofBacking,
    ),
  ],
  [
    'stats_total/cache_miss_collisions',
    counter(
      'bcache_cache_miss_collisions_total',
      'Data that was to enter the cache after a miss when a write had put it there.',
      ofBacking,
    ),
  ],
]
const readaheads = counter('bcache_cache_readaheads_total', 'Times that data was read ahead.', ofBacking)

/** By their name in the file `writeback_rate_debug`. */
const writeback: ReadonlyMap<string, Family> = new Map([
  ['target', gauge('bcache_dirty_target_bytes', 'Dirty data that writing back aims at.', ofBacking)],
  [
    'rate',
    gauge('bcache_writeback_rate', 'Bytes that are written back in a second.', {
      ...ofBacking,
      unit: 'By/s',
    }),
  ],
  [
    'proportional',
    gauge(
      'bcache_writeback_rate_proportional_term',
      'Share of the proportional part in the rate of writing back.',
      ofBacking,
    ),
  ],
  [
    'integral',
    gauge(
      'bcache_writeback_rate_integral_term',
      'Share of the integral part in the rate of writing back.',
      ofBacking,
    ),
  ],
  ['change', gauge('bcache_writeback_change', 'Last change of the rate of writing back.', ofBacking)],
])

const cacheFiles: Files = [
  ['io_errors', gauge('bcache_io_errors', 'Errors of a cache device; old ones fade out.', ofCache)],
  [
    'metadata_written',
    counter('bcache_metadata_written_bytes_total', 'Bytes written that are no data.', ofCache),
  ],
  ['written', counter('bcache_written_bytes_total', 'Bytes of data written to a cache device.', ofCache)],
]

/** By their name in the file `priority_stats`. */
const priorities: ReadonlyMap<string, Family> = new Map([
  [
    'Unused',
    gauge('bcache_priority_stats_unused_percent', 'Part of a cache device that holds nothing.', ofCache),
  ],
  [
    'Metadata',
    gauge('bcache_priority_stats_metadata_percent', 'Part of a cache device that holds no data.', ofCache),
  ],
])

/** Cache sets of bcache, from /sys/fs/bcache/<uuid>. */
export const bcache = collector({
  name: 'bcache',
  summary: 'Caches of bcache devices',
  source: '/sys/fs/bcache',
  enabledByDefault: true,
  metrics: [
    ...[...setFiles, ...backingFiles, ...cacheFiles].map(([, family]) => family),
    readaheads,
    ...writeback.values(),
    ...priorities.values(),
  ],
  options: { priorityStats: key(boolean, false, 'Shows priority statistics, which are expensive.') },
  start: ({ priorityStats }, { host: { sys } }) => ({
    collect(readings) {
      for (const uuid of sys.list(root)) {
        if (!uuid.includes('-')) continue
        const path = `${root}/${uuid}`
        for (const [file, family, factor = 1] of setFiles)
          readings.set(family, sizeAt(sys, `${path}/${file}`) * factor, uuid)
        for (const name of sys.list(path)) {
          if (/^bdev\d/.test(name)) readBacking(sys, `${path}/${name}`, name, uuid, readings)
          if (/^cache\d/.test(name)) readCache(sys, `${path}/${name}`, name, uuid, readings, priorityStats)
        }
      }
    },
  }),
})

function readBacking(sys: Tree, path: string, name: string, uuid: string, readings: Readings): void {
  for (const [file, family] of backingFiles) readings.set(family, sizeAt(sys, `${path}/${file}`), name, uuid)
  // Not counted since Linux 5.19.
  const ahead = `${path}/stats_total/cache_readaheads`
  const count = sys.exists(ahead) ? sizeAt(sys, ahead) : 0
  if (count !== 0) readings.set(readaheads, count, name, uuid)
  readNamed(sys, `${path}/writeback_rate_debug`, writeback, (family, value) =>
    readings.set(family, value, name, uuid),
  )
}

function readCache(
  sys: Tree,
  path: string,
  name: string,
  uuid: string,
  readings: Readings,
  priorityStats: boolean,
): void {
  for (const [file, family] of cacheFiles) readings.set(family, sizeAt(sys, `${path}/${file}`), name, uuid)
  if (priorityStats)
    readNamed(sys, `${path}/priority_stats`, priorities, (family, value) =>
      readings.set(family, value, name, uuid),
    )
}

/** Reads lines `name: value` with names that have a family; all of them must exist. */
function readNamed(
  sys: Tree,
  path: string,
  wanted: ReadonlyMap<string, Family>,
  found: (family: Family, value: number) => void,
): void {
  let missing = wanted.size
  for (const line of sys.text(path).split('\n')) {
    const at = line.indexOf(':')
    const family = at < 0 ? undefined : wanted.get(line.slice(0, at))
    if (family === undefined) continue
    missing--
    found(
      family,
      sizeOf(
        line
          .slice(at + 1)
          .trim()
          .replace(/\/sec$|%$/, ''),
        sys.at(path),
      ),
    )
  }
  if (missing > 0) throw new Error(`cannot read ${sys.at(path)}: a line is missing`)
}

function sizeAt(sys: Tree, path: string): number {
  return sizeOf(textAt(sys, path), sys.at(path))
}

/**
 * A number from bch_hprint() of the kernel: with a letter for a power of 1024, and a fraction in 1024ths of ten.
 * Without a letter the fraction is ignored.
 */
function sizeOf(text: string, where: string): number {
  const [, sign, whole, fraction = '0', letter = ''] = /^(-?)(\d+)(?:\.(\d+))?([kMGTPEZY]?)$/.exec(text) ?? []
  if (whole === undefined) throw new Error(`cannot read ${where}: no number`)
  const power = letter === '' ? 0 : 'kMGTPEZY'.indexOf(letter) + 1
  const size =
    power === 0 ? Number(whole) : Math.trunc((Number(whole) + Number(fraction) / 10.24) * 1024 ** power)
  return sign === '-' ? -size : size
}
