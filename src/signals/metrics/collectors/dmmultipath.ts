import { numberAt, optionalTextAt, textAt } from './_small-file.ts'
import { collector, gauge, NoData } from './collector.ts'

const labels = ['device', 'sysfs_name']
const info = gauge('dmmultipath_device_info', 'Names of a multipath device. The value is 1.', {
  labels: ['device', 'sysfs_name', 'uuid'],
})
const active = gauge(
  'dmmultipath_device_active',
  'Whether a multipath device works (1), or is suspended (0).',
  {
    labels,
  },
)
const size = gauge('dmmultipath_device_size_bytes', 'Size of a multipath device.', {
  labels,
  otel: {
    name: 'system.disk.limit',
    unit: 'By',
    kind: 'updowncounter',
    attributes: { sysfs_name: 'system.device' },
  },
})
const paths = gauge('dmmultipath_device_paths', 'Paths of a multipath device.', { labels })
const activePaths = gauge('dmmultipath_device_paths_active', 'Paths of a multipath device that work.', {
  labels,
})
const failedPaths = gauge(
  'dmmultipath_device_paths_failed',
  'Paths of a multipath device that do not work.',
  {
    labels,
  },
)
const pathState = gauge(
  'dmmultipath_path_state',
  'State of the device that a path leads to. The value is 1.',
  {
    labels: ['device', 'path', 'state'],
  },
)

/** States of a path that works: of a SCSI device and of an NVMe controller. */
const working = new Set(['running', 'live'])
const sectorBytes = 512

/** Multipath devices of the device mapper, from /sys/block/dm-*. */
export const dmmultipath = collector({
  name: 'dmmultipath',
  summary: 'Paths of multipath block devices',
  source: '/sys/block/dm-*',
  enabledByDefault: true,
  metrics: [info, active, size, paths, activePaths, failedPaths, pathState],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      if (!sys.exists('block')) throw new NoData('/sys/block not found: the kernel has no block devices')
      for (const name of sys.list('block')) {
        if (!name.startsWith('dm-')) continue
        const path = `block/${name}`
        const uuid = optionalTextAt(sys, `${path}/dm/uuid`)
        if (uuid === undefined || !uuid.startsWith('mpath-')) continue
        const device = textAt(sys, `${path}/dm/name`)
        readings.set(info, 1, device, name, uuid)
        readings.set(active, numberAt(sys, `${path}/dm/suspended`) === 1 ? 0 : 1, device, name)
        readings.set(size, numberAt(sys, `${path}/size`) * sectorBytes, device, name)
        const slaves = sys.list(`${path}/slaves`)
        let good = 0
        for (const slave of slaves) {
          // Not all drivers report it: virtio and DASD do not.
          const state = optionalTextAt(sys, `block/${slave}/device/state`) ?? 'unknown'
          if (working.has(state)) good++
          readings.set(pathState, 1, device, slave, state)
        }
        readings.set(paths, slaves.length, device, name)
        readings.set(activePaths, good, device, name)
        readings.set(failedPaths, slaves.length - good, device, name)
      }
    },
  }),
})
