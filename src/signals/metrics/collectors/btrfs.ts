import { closeSync, constants, openSync } from 'node:fs'
import { errorText, type Logger } from '../../../foundation/lib/logger.ts'
import { type Mount, MountTable } from '../../../kernel/mounts.ts'
import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { type BtrfsDevice, errorTypes, readBtrfsDevices } from './_btrfs-devices.ts'
import { numberAt, optionalNumberAt, optionalTextAt } from './_small-file.ts'
import { collector, counter, gauge, type Readings, type Tree } from './collector.ts'

const root = 'fs/btrfs'
const labels = ['uuid']
const info = gauge('btrfs_info', 'A mounted btrfs and its label. The value is 1.', {
  labels: ['label', 'uuid'],
})
const globalReserve = gauge('btrfs_global_rsv_size_bytes', 'Space that is set aside for emergencies.', {
  labels,
})
const commits = counter('btrfs_commits_total', 'Transactions that were committed.', { labels })
const lastCommit = gauge('btrfs_last_commit_seconds', 'Time that the last commit took.', { labels })
const maxCommit = gauge('btrfs_max_commit_seconds', 'Time that the longest commit took.', { labels })
const allCommits = counter('btrfs_commit_seconds_total', 'Time that all commits took together.', { labels })
const reserved = gauge(
  'btrfs_reserved_bytes',
  'Space that is promised and not yet used, by what it is for.',
  {
    labels: ['block_group_type', 'uuid'],
  },
)
const ofLayout = { labels: ['block_group_type', 'mode', 'uuid'] }
const used = gauge('btrfs_used_bytes', 'Space in use, by what for and how it is laid out.', ofLayout)
const size = gauge('btrfs_size_bytes', 'Space allocated, by what for and how it is laid out.', ofLayout)
const ratio = gauge(
  'btrfs_allocation_ratio',
  'Bytes on disks for a byte of a layout; 0: not known.',
  ofLayout,
)
const deviceHelp = 'Size of a device of the file system.'
const deviceSize = gauge('btrfs_device_size_bytes', deviceHelp, { labels: ['device', 'uuid'] })
const ofDevice = { labels: ['btrfs_dev_uuid', 'device', 'uuid'] }
const deviceSizeByUuid = gauge('btrfs_device_size_bytes', deviceHelp, ofDevice)
const deviceUnused = gauge('btrfs_device_unused_bytes', 'Space of a device that is not allocated.', ofDevice)
const deviceErrors = counter('btrfs_device_errors_total', 'Errors of a device, by kind.', {
  labels: ['btrfs_dev_uuid', 'device', 'type', 'uuid'],
})

const sectorBytes = 512
/** Bytes on disk per byte of data, by layout. */
const copies = new Map([
  ['single', 1],
  ['raid0', 1],
  ['dup', 2],
  ['raid1', 2],
  ['raid10', 2],
  ['raid1c3', 3],
  ['raid1c4', 4],
])
const parityDevices = new Map([
  ['raid5', 1],
  ['raid6', 2],
])

/** Mounted btrfs file systems, from /sys/fs/btrfs/<uuid>, and more about their devices by ioctl. */
export const btrfs = collector({
  name: 'btrfs',
  summary: 'Btrfs file systems',
  source: '/sys/fs/btrfs',
  enabledByDefault: true,
  metrics: [
    info,
    globalReserve,
    commits,
    lastCommit,
    maxCommit,
    allCommits,
    reserved,
    used,
    size,
    ratio,
    deviceSize,
    deviceSizeByUuid,
    deviceUnused,
    deviceErrors,
  ],
  start: (_options, { host, log }) => {
    const { sys, proc } = host
    const mounts = new MountTable(proc, ['1/mountinfo', 'self/mountinfo'], host.root.root)
    return {
      collect(readings) {
        const names = sys.list(root).filter(name => name.includes('-'))
        if (names.length === 0) return
        const devices = devicesByUuid(mounts, log)
        for (const name of names) {
          const path = `${root}/${name}`
          const uuid = optionalTextAt(sys, `${path}/metadata_uuid`) || name
          const present = sys.list(`${path}/devices`)
          showFilesystem(sys, path, uuid, present.length, readings)
          const found = devices.get(name)
          if (found === undefined)
            for (const each of present)
              readings.set(
                deviceSize,
                sectorBytes * numberAt(sys, `${path}/devices/${each}/size`),
                each,
                uuid,
              )
          else for (const each of found) showDevice(each, uuid, readings)
        }
      },
    }
  },
})

function showFilesystem(sys: Tree, path: string, uuid: string, devices: number, readings: Readings): void {
  readings.set(info, 1, optionalTextAt(sys, `${path}/label`) ?? '', uuid)
  readings.set(globalReserve, numberAt(sys, `${path}/allocation/global_rsv_size`), uuid)
  // Since Linux 6.0.
  const commit = sys.find(`${path}/commit_stats`) ?? ''
  const field = (key: string) => Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(commit)?.[1] ?? 0)
  readings.set(commits, field('commits'), uuid)
  readings.set(lastCommit, field('last_commit_ms') / 1000, uuid)
  readings.set(maxCommit, field('max_commit_ms') / 1000, uuid)
  readings.set(allCommits, field('total_commit_ms') / 1000, uuid)
  for (const type of ['data', 'metadata', 'system']) {
    const group = `${path}/allocation/${type}`
    readings.set(reserved, numberAt(sys, `${group}/bytes_reserved`), type, uuid)
    for (const mode of sys.list(group)) {
      const total = optionalNumberAt(sys, `${group}/${mode}/total_bytes`)
      if (total === undefined) continue
      readings.setAll(used, numberAt(sys, `${group}/${mode}/used_bytes`), [type, mode, uuid])
      readings.setAll(size, total, [type, mode, uuid])
      readings.setAll(ratio, ratioOf(mode, devices), [type, mode, uuid])
    }
  }
}

function showDevice(device: BtrfsDevice, uuid: string, readings: Readings): void {
  readings.setAll(deviceSizeByUuid, device.sizeBytes, [device.uuid, device.name, uuid])
  readings.setAll(deviceUnused, device.unusedBytes, [device.uuid, device.name, uuid])
  for (const [i, type] of errorTypes.entries())
    readings.setAll(deviceErrors, device.errors[i]!, [device.uuid, device.name, type, uuid])
}

function ratioOf(mode: string, devices: number): number {
  const parity = parityDevices.get(mode)
  if (parity === undefined) return copies.get(mode) ?? 0
  return devices > parity ? devices / (devices - parity) : 0
}

/** Devices by UUID of their file system, for file systems that can be queried through one of their mounts. */
function devicesByUuid(mounts: MountTable, log: Logger): ReadonlyMap<string, readonly BtrfsDevice[]> {
  const found = new Map<string, readonly BtrfsDevice[]>()
  const native = loadNative()
  if (native instanceof Unsupported) return found
  const asked = new Set<string>()
  for (const { type, device, path, isRemote } of mountsOf(mounts, log)) {
    if (type !== 'btrfs' || isRemote || asked.has(device)) continue
    try {
      const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK)
      try {
        const { uuid, devices } = readBtrfsDevices((request, argument) => native.ioctl(fd, request, argument))
        found.set(uuid, devices)
        asked.add(device)
      } finally {
        closeSync(fd)
      }
    } catch (error) {
      // Another mount of it may be accessible; otherwise /sys has the sizes.
      log.debug('cannot read the devices of a btrfs', { path: path.toString(), error: errorText(error) })
    }
  }
  return found
}

function mountsOf(mounts: MountTable, log: Logger): readonly Mount[] {
  try {
    return mounts.read()
  } catch (error) {
    log.debug('cannot find btrfs mounts', { error: errorText(error) })
    return []
  }
}
