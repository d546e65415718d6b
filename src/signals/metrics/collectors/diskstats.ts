import { decimal, Scanner } from '../../../foundation/lib/scanner.ts'
import type { FamilyOptions } from '../../../foundation/model/collector.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { deviceFilter } from './_device-filter.ts'
import { collector, counter, type Family, gauge, type Host, type Readings } from './collector.ts'

const labels = ['device']
/** The sectors of /proc/diskstats have this size whatever the device. */
const sectorBytes = 512
const secondsPerTick = 1 / 1000

const info = gauge('disk_info', 'Where a block device is and what it calls itself. The value is 1.', {
  labels: ['device', 'major', 'minor', 'model', 'path', 'revision', 'rotational', 'serial', 'wwn'],
})
const filesystemInfo = gauge('disk_filesystem_info', 'What a block device holds. The value is 1.', {
  labels: ['device', 'type', 'usage', 'uuid', 'version'],
})
const mapperInfo = gauge(
  'disk_device_mapper_info',
  'Names of a device of the device mapper. The value is 1.',
  { labels: ['device', 'lv_layer', 'lv_name', 'name', 'uuid', 'vg_name'] },
)
/** Families by property of the udev database. */
const ataFamilies = new Map([
  [
    'ID_ATA_WRITE_CACHE',
    gauge('disk_ata_write_cache', 'Whether an ATA disk has a write cache (1), or not (0).', { labels }),
  ],
  [
    'ID_ATA_WRITE_CACHE_ENABLED',
    gauge('disk_ata_write_cache_enabled', 'Whether the write cache of an ATA disk is on (1), or off (0).', {
      labels,
    }),
  ],
  [
    'ID_ATA_ROTATION_RATE_RPM',
    gauge('disk_ata_rotation_rate_rpm', 'Turns per minute of an ATA disk; 0 where nothing turns.', {
      labels,
      unit: '{rotation}/min',
    }),
  ],
])

function disk(metric: string, unit: string, direction?: 'read' | 'write'): FamilyOptions {
  const constant = direction === undefined ? {} : { constant: { 'disk.io.direction': direction } }
  const attributes = { device: 'system.device' }
  return { labels, otel: { name: `system.disk.${metric}`, unit, kind: 'counter', attributes, ...constant } }
}

/** Columns of /proc/diskstats after the name, in order (Documentation/admin-guide/iostats.rst). */
const columns: readonly (readonly [family: Family, factor: number])[] = [
  [
    counter(
      'disk_reads_completed_total',
      'Reads that were completed.',
      disk('operations', '{operation}', 'read'),
    ),
    1,
  ],
  [
    counter(
      'disk_reads_merged_total',
      'Reads that were joined with a neighbouring one.',
      disk('merged', '{operation}', 'read'),
    ),
    1,
  ],
  [counter('disk_read_bytes_total', 'Bytes that were read.', disk('io', 'By', 'read')), sectorBytes],
  [
    counter(
      'disk_read_time_seconds_total',
      'Time that all reads took together.',
      disk('operation_time', 's', 'read'),
    ),
    secondsPerTick,
  ],
  [
    counter(
      'disk_writes_completed_total',
      'Writes that were completed.',
      disk('operations', '{operation}', 'write'),
    ),
    1,
  ],
  [
    counter(
      'disk_writes_merged_total',
      'Writes that were joined with a neighbouring one.',
      disk('merged', '{operation}', 'write'),
    ),
    1,
  ],
  [counter('disk_written_bytes_total', 'Bytes that were written.', disk('io', 'By', 'write')), sectorBytes],
  [
    counter(
      'disk_write_time_seconds_total',
      'Time that all writes took together.',
      disk('operation_time', 's', 'write'),
    ),
    secondsPerTick,
  ],
  [gauge('disk_io_now', 'Requests that the device is working on.', { labels }), 1],
  [
    counter(
      'disk_io_time_seconds_total',
      'Time in which the device worked on at least one request.',
      disk('io_time', 's'),
    ),
    secondsPerTick,
  ],
  [
    counter(
      'disk_io_time_weighted_seconds_total',
      'Time that the device worked, times the requests that it worked on.',
      { labels },
    ),
    secondsPerTick,
  ],
  [counter('disk_discards_completed_total', 'Discards that were completed.', { labels }), 1],
  [
    counter('disk_discards_merged_total', 'Discards that were joined with a neighbouring one.', { labels }),
    1,
  ],
  [
    counter('disk_discarded_sectors_total', 'Sectors of 512 bytes that were discarded.', {
      labels,
      unit: '{sector}',
    }),
    1,
  ],
  [
    counter('disk_discard_time_seconds_total', 'Time that all discards took together.', { labels }),
    secondsPerTick,
  ],
  [counter('disk_flush_requests_total', 'Flushes that were completed.', { labels }), 1],
  [
    counter('disk_flush_requests_time_seconds_total', 'Time that all flushes took together.', { labels }),
    secondsPerTick,
  ],
]

/** Minimum columns; Linux before 2.6.25 has fewer for partitions, with other meanings. */
const fewestColumns = 11

/** Validity of names and properties of a device, in milliseconds. */
const factsLastMs = 60_000

/** Maximum length of a line in a udev record. */
const longestProperty = 4096

const defaultExclude = ['^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$']

/** I/O of block devices from /proc/diskstats, and their properties from udev. */
export const diskstats = collector({
  name: 'diskstats',
  summary: 'I/O of block devices',
  source: '/proc/diskstats',
  enabledByDefault: true,
  metrics: [...columns.map(([family]) => family), info, filesystemInfo, mapperInfo, ...ataFamilies.values()],
  options: {
    device_include: key(list(regex), [], 'Regular expressions for devices to show; empty for all.'),
    device_exclude: key(list(regex), defaultExclude, 'Regular expressions for devices to exclude.'),
  },
  start: ({ device_include: include, device_exclude: exclude }, { host }) => {
    const shows = deviceFilter({ include, exclude, defaultExclude }, 'diskstats')
    const scan = new Scanner(Buffer.alloc(0))
    const values = new Float64Array(columns.length)
    const known = new Map<string, Device>()
    let round = 0
    return {
      collect(readings) {
        round++
        scan.reset(host.proc.bytes('diskstats'))
        while (scan.line()) {
          if (scan.done) continue
          const major = scan.number()
          const minor = scan.number()
          const name = scan.text()
          if (Number.isNaN(major + minor) || name === '')
            throw new Error('cannot read /proc/diskstats: a line has no device')
          if (!shows(name)) continue
          const count = readColumns(scan, values, name)
          if (count < fewestColumns) continue
          for (let i = 0; i < count; i++) {
            const [family, factor] = columns[i]!
            readings.set(family, values[i]! * factor, name)
          }
          let device = known.get(name)
          if (device === undefined || !device.has(major, minor)) {
            device = new Device(name, major, minor)
            known.set(name, device)
          }
          device.round = round
        }
        // Only now, as reading their files overwrites the bytes scanned above.
        for (const [name, device] of known) {
          if (device.round === round) device.show(readings, host)
          else known.delete(name)
        }
      },
    }
  },
})

/** Reads the numbers of a line. Returns their count. */
function readColumns(scan: Scanner, into: Float64Array, name: string): number {
  let count = 0
  for (; count < into.length && !scan.done; count++) {
    const value = scan.number()
    if (Number.isNaN(value)) throw new Error(`cannot read /proc/diskstats: no number in the line of ${name}`)
    into[count] = value
  }
  return count
}

type Fact = readonly [family: Family, value: number, labels: readonly string[]]

/** A device with its rarely changing properties. */
class Device {
  round = 0
  readonly #name: string
  readonly #major: number
  readonly #minor: number
  #facts: readonly Fact[] = []
  #readMs = Number.NEGATIVE_INFINITY

  constructor(name: string, major: number, minor: number) {
    this.#name = name
    this.#major = major
    this.#minor = minor
  }

  has(major: number, minor: number): boolean {
    return major === this.#major && minor === this.#minor
  }

  show(readings: Readings, host: Host): void {
    const now = performance.now()
    if (now - this.#readMs > factsLastMs) {
      this.#facts = this.#read(host)
      this.#readMs = now
    }
    for (const [family, value, labels] of this.#facts) readings.setAll(family, value, labels)
  }

  #read({ sys, udev }: Host): readonly Fact[] {
    const name = this.#name
    const major = String(this.#major)
    const minor = String(this.#minor)
    const properties = parseProperties(udev.find(`b${major}:${minor}`) ?? '')
    const property = (key: string) => properties.get(key) ?? ''
    const texts = (...keys: readonly string[]) => [name, ...keys.map(property)]
    const rotational = sys.find(`block/${name}/queue/rotational`) === '1' ? '1' : '0'
    const serial = property('SCSI_IDENT_SERIAL') || property('ID_SERIAL_SHORT') || property('ID_SERIAL')
    const where = [name, major, minor, property('ID_MODEL'), property('ID_PATH'), property('ID_REVISION')]
    const facts: Fact[] = [[info, 1, [...where, rotational, serial, property('ID_WWN')]]]
    if (property('ID_FS_TYPE') !== '')
      facts.push([filesystemInfo, 1, texts('ID_FS_TYPE', 'ID_FS_USAGE', 'ID_FS_UUID', 'ID_FS_VERSION')])
    if (property('DM_NAME') !== '')
      facts.push([mapperInfo, 1, texts('DM_LV_LAYER', 'DM_LV_NAME', 'DM_NAME', 'DM_UUID', 'DM_VG_NAME')])
    if (property('ID_ATA') !== '')
      for (const [key, family] of ataFamilies) {
        const value = decimal(property(key))
        if (!Number.isNaN(value)) facts.push([family, value, [name]])
      }
    return facts
  }
}

/** The properties of a record of the udev database, which has them as lines `E:key=value`. */
function parseProperties(record: string): ReadonlyMap<string, string> {
  const properties = new Map<string, string>()
  for (const line of record.split('\n')) {
    const at = line.indexOf('=')
    if (line.startsWith('E:') && at > 0 && line.length <= longestProperty)
      properties.set(line.slice(2, at), line.slice(at + 1))
  }
  return properties
}
