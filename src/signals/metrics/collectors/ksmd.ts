import { collector, counter, gauge, NoData } from './collector.ts'

/** File, family, and factor. */
const files = [
  ['full_scans', counter('ksmd_full_scans_total', 'Times that all mergeable memory was looked through.'), 1],
  [
    'general_profit',
    gauge('ksmd_general_profit_bytes', 'Memory that merging saves, less what it needs itself.'),
    1,
  ],
  [
    'merge_across_nodes',
    gauge('ksmd_merge_across_nodes', 'Whether pages of different NUMA nodes are merged.'),
    1,
  ],
  ['pages_shared', gauge('ksmd_pages_shared', 'Pages that others were merged into.'), 1],
  ['pages_sharing', gauge('ksmd_pages_sharing', 'Pages that were saved by merging.'), 1],
  ['pages_to_scan', gauge('ksmd_pages_to_scan', 'Pages that are looked at before each rest.'), 1],
  ['pages_unshared', gauge('ksmd_pages_unshared', 'Pages that are unlike all others.'), 1],
  ['pages_volatile', gauge('ksmd_pages_volatile', 'Pages that change too often to be merged.'), 1],
  ['run', gauge('ksmd_run', 'Whether merging is off (0), on (1), or is being undone (2).'), 1],
  ['sleep_millisecs', gauge('ksmd_sleep_seconds', 'Time of each rest.'), 0.001],
] as const

/** Merging of identical pages, from /sys/kernel/mm/ksm (kernel, admin-guide/mm/ksm.rst). */
export const ksmd = collector({
  name: 'ksmd',
  summary: 'Merging of identical memory pages (KSM)',
  source: '/sys/kernel/mm/ksm',
  enabledByDefault: false,
  metrics: files.map(([, family]) => family),
  start: (_options, { host }) => ({
    collect(readings) {
      let found = false
      for (const [name, family, scale] of files) {
        const value = host.sys.number(`kernel/mm/ksm/${name}`)
        if (value === undefined) continue
        readings.set(family, scale === 1 ? value : value / 1000)
        found = true
      }
      if (!found) throw new NoData(`${host.sys.at('kernel/mm/ksm')} not found: it requires CONFIG_KSM`)
    },
  }),
})
