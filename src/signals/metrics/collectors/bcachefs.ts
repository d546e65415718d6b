import { decimal } from '../../../foundation/lib/scanner.ts'
import { optionalNumberAt, optionalTextAt } from './_small-file.ts'
import { collector, counter, gauge, NoData, type Readings, type Tree } from './collector.ts'
import { families, metricName } from './families.ts'

const root = 'fs/bcachefs'
const info = gauge('bcachefs_info', 'A mounted bcachefs. The value is 1.', { labels: ['uuid'] })
const btreeCache = gauge('bcachefs_btree_cache_size_bytes', 'Memory of the cache of B-tree nodes.', {
  labels: ['uuid'],
})
const compressed = gauge('bcachefs_compression_compressed_bytes', 'Size of compressed data.', {
  labels: ['algorithm', 'uuid'],
})
const uncompressed = gauge(
  'bcachefs_compression_uncompressed_bytes',
  'Size that compressed data would have without compression.',
  { labels: ['algorithm', 'uuid'] },
)
const errors = counter('bcachefs_errors_total', 'Inconsistencies that were found, by kind.', {
  labels: ['error_type', 'uuid'],
})
const btreeWrites = counter('bcachefs_btree_writes_total', 'Writes of B-tree nodes, by cause.', {
  labels: ['type', 'uuid'],
})
const btreeWriteSize = gauge(
  'bcachefs_btree_write_average_size_bytes',
  'Mean size of a write of B-tree nodes, by cause.',
  { labels: ['type', 'uuid'] },
)
const deviceInfo = gauge('bcachefs_device_info', 'Label and state of a device. The value is 1.', {
  labels: ['device', 'label', 'state', 'uuid'],
})
const ofDevice = ['device', 'uuid']
const bucketSize = gauge('bcachefs_device_bucket_size_bytes', 'Size of a bucket of a device.', {
  labels: ofDevice,
})
const buckets = gauge('bcachefs_device_buckets', 'Buckets of a device.', { labels: ofDevice })
const durability = gauge('bcachefs_device_durability', 'Replicas that one on this device counts for.', {
  labels: ofDevice,
})
const ioDone = counter('bcachefs_device_io_done_bytes_total', 'Bytes read and written, by kind of data.', {
  labels: ['data_type', 'device', 'operation', 'uuid'],
})
const ioErrors = counter(
  'bcachefs_device_io_errors_total',
  'Errors of a device since the file system was made, by kind.',
  { labels: ['device', 'type', 'uuid'] },
)

/** Mounted bcachefs file systems, from /sys/fs/bcachefs/<uuid>. */
export const bcachefs = collector({
  name: 'bcachefs',
  summary: 'File systems of bcachefs',
  source: '/sys/fs/bcachefs',
  enabledByDefault: true,
  metrics: [
    info,
    btreeCache,
    compressed,
    uncompressed,
    errors,
    btreeWrites,
    btreeWriteSize,
    deviceInfo,
    bucketSize,
    buckets,
    durability,
    ioDone,
    ioErrors,
  ],
  dynamic: 'One counter for each file in the directory `counters` of a file system.',
  start: (_options, { host: { sys } }) => {
    const counterOf = families(name =>
      counter(`bcachefs_${metricName(name)}_total`, `The counter ${name} since the file system was made.`, {
        labels: ['uuid'],
      }),
    )
    return {
      collect(readings) {
        const uuids = sys.list(root)
        if (uuids.length === 0) throw new NoData('/sys/fs/bcachefs is empty: no bcachefs is mounted')
        for (const uuid of uuids) {
          const path = `${root}/${uuid}`
          readings.set(info, 1, uuid)
          readings.set(btreeCache, sizeAt(sys, `${path}/btree_cache_size`), uuid)
          readTables(sys, path, uuid, readings)
          for (const name of sys.list(`${path}/counters`))
            readings.set(counterOf(name)!, sinceCreation(sys, `${path}/counters/${name}`), uuid)
          for (const name of sys.list(path))
            if (name.startsWith('dev-')) readDevice(sys, `${path}/${name}`, name.slice(4), uuid, readings)
        }
      },
    }
  },
})

function readTables(sys: Tree, path: string, uuid: string, readings: Readings): void {
  const compression = `${path}/compression_stats`
  for (const [algorithm = '', small, large] of rowsOf(sys, compression, 3, true)) {
    readings.set(compressed, sizeOf(small, sys.at(compression)), algorithm.replace(/:$/, ''), uuid)
    readings.set(uncompressed, sizeOf(large, sys.at(compression)), algorithm.replace(/:$/, ''), uuid)
  }
  const found = `${path}/errors`
  for (const [type, count] of rowsOf(sys, found, 2, false))
    readings.set(errors, countOf(count, sys.at(found)), type, uuid)
  const writes = `${path}/btree_write_stats`
  for (const [type = '', count, size] of rowsOf(sys, writes, 3, true)) {
    readings.set(btreeWrites, countOf(count, sys.at(writes)), type.replace(/:$/, ''), uuid)
    readings.set(btreeWriteSize, sizeOf(size, sys.at(writes)), type.replace(/:$/, ''), uuid)
  }
}

function readDevice(sys: Tree, path: string, device: string, uuid: string, readings: Readings): void {
  readings.setAll(deviceInfo, 1, [
    device,
    optionalTextAt(sys, `${path}/label`) ?? '',
    optionalTextAt(sys, `${path}/state`) ?? '',
    uuid,
  ])
  readings.set(bucketSize, sizeAt(sys, `${path}/bucket_size`), device, uuid)
  readings.set(buckets, optionalNumberAt(sys, `${path}/nbuckets`) ?? 0, device, uuid)
  readings.set(durability, optionalNumberAt(sys, `${path}/durability`) ?? 0, device, uuid)
  let operation = ''
  for (const [name, value] of pairsOf(sys, `${path}/io_done`)) {
    if (value === '' && (name === 'read' || name === 'write')) operation = name
    else if (operation !== '')
      readings.setAll(ioDone, countOf(value, sys.at(`${path}/io_done`)), [name, device, operation, uuid])
  }
  // One section since the file system was created, another one since the last reset.
  const sections = (sys.find(`${path}/io_errors`) ?? '').split(/^IO errors since /m)
  const all = sections.find(section => section.startsWith('filesystem creation'))
  for (const [type, value] of all === undefined ? [] : pairs(all))
    readings.set(ioErrors, countOf(value, sys.at(`${path}/io_errors`)), device, type, uuid)
}

/** Rows of a table that have this many words or more. */
function rowsOf(sys: Tree, path: string, words: number, headed: boolean): readonly (readonly string[])[] {
  const lines = (sys.find(path) ?? '').split('\n').slice(headed ? 1 : 0)
  return lines.map(line => line.trim().split(/\s+/)).filter(row => row.length >= words)
}

function pairsOf(sys: Tree, path: string): readonly (readonly [name: string, value: string])[] {
  return pairs(sys.find(path) ?? '')
}

/** Lines `name: value`. */
function pairs(text: string): readonly (readonly [name: string, value: string])[] {
  return text
    .split('\n')
    .map(line => [line, line.indexOf(':')] as const)
    .filter(([, at]) => at >= 0)
    .map(([line, at]) => [line.slice(0, at).trim(), line.slice(at + 1).trim()])
}

function sinceCreation(sys: Tree, path: string): number {
  const values = new Map(pairsOf(sys, path))
  const value = values.get('since filesystem creation')
  if (value !== undefined) return sizeOf(value, sys.at(path))
  if (values.has('since mount')) return 0
  throw new Error(`cannot read ${sys.at(path)}: no counter`)
}

function countOf(text: string | undefined, where: string): number {
  const value = decimal(text ?? '')
  if (Number.isNaN(value)) throw new Error(`cannot read ${where}: no number`)
  return value
}

function sizeAt(sys: Tree, path: string): number {
  const text = sys.find(path)
  return text === undefined ? 0 : sizeOf(text, sys.at(path))
}

/** A number with a letter for a power of 1024, also for numbers that are not sizes. */
function sizeOf(text: string | undefined, where: string): number {
  const [, number, letter = ''] = /^([\d.]+)([kmgtpe]?)$/i.exec(text ?? '') ?? []
  const power = letter === '' ? 0 : 'kmgtpe'.indexOf(letter.toLowerCase()) + 1
  return Math.trunc(countOf(number, where) * 1024 ** power)
}
