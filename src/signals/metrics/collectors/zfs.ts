import { decimal, Scanner } from '../../../foundation/lib/scanner.ts'
import { textAt } from './_small-file.ts'
import { collector, type Family, gauge, NoData, type Readings, type Tree, untyped } from './collector.ts'
import { families, metricName } from './families.ts'

const root = 'spl/kstat/zfs'

/** File → prefix of its metric names. */
const files: Readonly<Record<string, string>> = {
  abdstats: 'zfs_abd',
  arcstats: 'zfs_arc',
  dbufstats: 'zfs_dbuf',
  dmu_tx: 'zfs_dmu_tx',
  dnodestats: 'zfs_dnode',
  fm: 'zfs_fm',
  vdev_cache_stats: 'zfs_vdev_cache',
  vdev_mirror_stats: 'zfs_vdev_mirror',
  xuio_stats: 'zfs_xuio',
  zfetchstats: 'zfs_zfetch',
  zil: 'zfs_zil',
}

const poolState = gauge('zfs_zpool_state', 'State of a pool: 1 for the one it is in, 0 for others.', {
  labels: ['state', 'zpool'],
})
const poolStates = ['online', 'degraded', 'faulted', 'offline', 'removed', 'unavail', 'suspended']

/** Types of kstat values (sys/kstat.h of OpenZFS) that are shown. */
const int64 = '3'
const uint64 = '4'

type FamilyOf = (field: string) => Family | undefined

function familiesOf(prefix: string, file: string, labels: readonly string[] = []): FamilyOf {
  return families(field =>
    untyped(`${prefix}_${metricName(field)}`, `The field ${field} of the kstat ${file}.`, { labels }),
  )
}

/** Counters of OpenZFS, from /proc/spl/kstat/zfs. */
export const zfs = collector({
  name: 'zfs',
  summary: 'ZFS pools and caches',
  source: '/proc/spl/kstat/zfs',
  enabledByDefault: true,
  metrics: [poolState],
  dynamic: 'One metric for each numeric field of the kstats of OpenZFS, of its pools and of their data sets.',
  start: (_options, { host: { proc } }) => {
    const scan = new Scanner(Buffer.alloc(0))
    const known = Object.entries(files).map(
      ([file, prefix]) => [`${root}/${file}`, familiesOf(prefix, file)] as const,
    )
    const ofPool = familiesOf('zfs_zpool', 'io', ['zpool'])
    const ofDataset = familiesOf('zfs_zpool_dataset', 'objset', ['dataset', 'zpool'])
    return {
      collect(readings) {
        if (!proc.exists(root)) throw new NoData(`/proc/${root} not found: the kernel has no ZFS`)
        for (const [path, familyOf] of known)
          if (proc.exists(path))
            readFields(scan.reset(proc.bytes(path)), path, (field, _type, value) =>
              readings.set(familyOf(field)!, value),
            )
        for (const pool of proc.directories(root)) readPool(proc, scan, pool, readings, ofPool, ofDataset)
      },
    }
  },
})

function readPool(
  proc: Tree,
  scan: Scanner,
  pool: string,
  readings: Readings,
  ofPool: FamilyOf,
  ofDataset: FamilyOf,
): void {
  for (const name of proc.list(`${root}/${pool}`)) {
    const path = `${root}/${pool}/${name}`
    if (name === 'io') readPoolIo(scan.reset(proc.bytes(path)), path, pool, readings, ofPool)
    else if (name === 'state') {
      const state = textAt(proc, path).toLowerCase()
      for (const each of poolStates) readings.set(poolState, each === state ? 1 : 0, each, pool)
    } else if (name.startsWith('objset-')) {
      let dataset = ''
      readFields(
        scan.reset(proc.bytes(path)),
        path,
        (field, type, value) => {
          if (type === uint64) readings.set(ofDataset(field)!, value, dataset, pool)
        },
        name => {
          dataset = name
        },
      )
    }
  }
}

/** Lines `name type data` below a header of these words. Throws if the header or a number is missing. */
function readFields(
  scan: Scanner,
  path: string,
  found: (field: string, type: string, value: number) => void,
  foundDataset?: (name: string) => void,
): void {
  while (scan.line()) {
    if (scan.starts('name') && scan.text() === 'name' && scan.text() === 'type' && scan.text() === 'data') {
      while (scan.line()) {
        const field = scan.text()
        const type = scan.text()
        if (field === 'dataset_name') foundDataset?.(scan.rest())
        if (type !== uint64 && type !== int64) continue
        const value = scan.number()
        if (Number.isNaN(value)) throw new Error(`cannot read /proc/${path}: ${field} is not a number`)
        found(field, type, value)
      }
      return
    }
  }
  throw new Error(`cannot read /proc/${path}: no header line`)
}

/** A header line, and lines of numbers below it (before OpenZFS 2.1). */
function readPoolIo(scan: Scanner, path: string, pool: string, readings: Readings, ofPool: FamilyOf): void {
  while (scan.line() && !scan.starts('nread'));
  const names = scan.rest().split(/\s+/)
  if (names.length < 12) throw new Error(`cannot read /proc/${path}: no header line`)
  while (scan.line())
    for (const name of names) {
      const value = decimal(scan.text())
      if (Number.isNaN(value)) throw new Error(`cannot read /proc/${path}: ${name} is not a number`)
      readings.set(ofPool(name)!, value, pool)
    }
}
