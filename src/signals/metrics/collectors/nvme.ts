import { optionalNumberAt, optionalTextAt, textAt } from './_small-file.ts'
import { collector, gauge, NoData, type Readings, type Tree } from './collector.ts'

const info = gauge('nvme_info', 'What an NVMe controller calls itself, and its state. The value is 1.', {
  labels: ['cntlid', 'device', 'firmware_revision', 'model', 'serial', 'state'],
})
const namespaceInfo = gauge(
  'nvme_namespace_info',
  'State of the access to a namespace over this controller. The value is 1.',
  { labels: ['ana_state', 'device', 'nsid'] },
)
const labels = ['device', 'nsid']
const capacity = gauge(
  'nvme_namespace_capacity_bytes',
  'Size of a namespace: its sectors times its size of a block.',
  { labels },
)
const size = gauge('nvme_namespace_size_bytes', 'Size of a namespace.', {
  labels,
  otel: { name: 'hw.logical_disk.limit', unit: 'By', kind: 'updowncounter', id: labels },
})
const used = gauge('nvme_namespace_used_bytes', 'Bytes of a namespace that are allocated.', {
  labels,
  otel: {
    name: 'hw.logical_disk.usage',
    unit: 'By',
    kind: 'updowncounter',
    id: labels,
    constant: { 'hw.logical_disk.state': 'used' },
  },
})
const blockSize = gauge('nvme_namespace_logical_block_size_bytes', 'Size of a block of a namespace.', {
  labels,
})

/** The second form is a path to a namespace that has several. */
const namespaceName = /^nvme\d+(?:c\d+)?n(\d+)$/

/** NVMe controllers and their namespaces, from /sys/class/nvme (Documentation/ABI/stable/sysfs-block). */
export const nvme = collector({
  name: 'nvme',
  summary: 'NVMe controllers and namespaces',
  source: '/sys/class/nvme',
  enabledByDefault: true,
  metrics: [info, namespaceInfo, capacity, size, used, blockSize],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      if (!sys.exists('class/nvme')) throw new NoData('/sys/class/nvme not found: no NVMe device')
      for (const device of sys.list('class/nvme')) {
        const path = `class/nvme/${device}`
        readings.setAll(info, 1, [
          textAt(sys, `${path}/cntlid`),
          device,
          textAt(sys, `${path}/firmware_rev`),
          textAt(sys, `${path}/model`),
          textAt(sys, `${path}/serial`),
          textAt(sys, `${path}/state`),
        ])
        for (const name of sys.list(path)) {
          const nsid = namespaceName.exec(name)?.[1]
          if (nsid !== undefined) readNamespace(sys, `${path}/${name}`, device, nsid, readings)
        }
      }
    },
  }),
})

function readNamespace(sys: Tree, path: string, device: string, nsid: string, readings: Readings): void {
  const block = optionalNumberAt(sys, `${path}/queue/logical_block_size`)
  const blocks = optionalNumberAt(sys, `${path}/size`)
  // Since Linux 6.8.
  const usedBlocks = optionalNumberAt(sys, `${path}/nuse`)
  readings.set(namespaceInfo, 1, optionalTextAt(sys, `${path}/ana_state`) ?? 'unknown', device, nsid)
  if (block === undefined) return
  readings.set(blockSize, block, device, nsid)
  if (blocks !== undefined) {
    readings.set(capacity, blocks * block, device, nsid)
    readings.set(size, blocks * block, device, nsid)
  }
  if (usedBlocks !== undefined) readings.set(used, usedBlocks * block, device, nsid)
}
