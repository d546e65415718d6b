import { Scanner } from '../../../foundation/lib/scanner.ts'
import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { askKernel, protocols } from '../../../kernel/netlink.ts'
import { deviceFilter } from './_device-filter.ts'
import { linkNames } from './_rtnetlink.ts'
import { collector, gauge } from './collector.ts'

const entries = gauge('arp_entries', 'Entries of the ARP table by network device.', { labels: ['device'] })

const getNeighbours = 30
const inet = 2
/** State of entries that need no resolution; /proc/net/arp does not show them either. */
const nudNoarp = 0x40
const columns = 6

/** Sizes of the ARP table, from rtnetlink(7) or /proc/net/arp. */
export const arp = collector({
  name: 'arp',
  summary: 'Entries of the ARP table',
  source: 'rtnetlink(7)',
  enabledByDefault: true,
  metrics: [entries],
  options: {
    device_include: key(regex, '', 'Regular expression for devices to show; empty for all.'),
    device_exclude: key(regex, '', 'Regular expression for devices to exclude; empty for none.'),
    netlink: key(boolean, true, 'Reads over netlink instead of /proc/net/arp.'),
  },
  start: ({ device_include, device_exclude, netlink }, { host }) => {
    const shows = deviceFilter({ include: device_include, exclude: device_exclude }, 'arp')
    return {
      collect(readings) {
        const counts = netlink ? countNeighbours() : countLines(host.proc.bytes('net/arp'))
        for (const [device, count] of counts) if (shows(device)) readings.set(entries, count, device)
      },
    }
  },
})

function countNeighbours(): ReadonlyMap<string, number> {
  const byIndex = new Map<number, number>()
  const payload = Buffer.alloc(12)
  payload[0] = inet
  askKernel(protocols.route, { type: getNeighbours, payload }, neighbour => {
    if (neighbour.u8() !== inet || (neighbour.u16(8) & nudNoarp) !== 0) return
    const index = neighbour.u32(4)
    byIndex.set(index, (byIndex.get(index) ?? 0) + 1)
  })
  const byName = new Map<string, number>()
  if (byIndex.size === 0) return byName
  const names = linkNames()
  for (const [index, count] of byIndex) {
    const name = names.get(index)
    if (name !== undefined) byName.set(name, count)
  }
  return byName
}

function countLines(bytes: Buffer): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const scan = new Scanner(bytes)
  if (!scan.line() || !scan.starts('IP address')) throw new Error('cannot read /proc/net/arp: no header')
  while (scan.line()) {
    scan.skip(columns - 1)
    const device = scan.text()
    if (device === '' || !scan.done)
      throw new Error(`cannot read /proc/net/arp: a line does not have ${columns} fields`)
    counts.set(device, (counts.get(device) ?? 0) + 1)
  }
  return counts
}
