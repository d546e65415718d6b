import { join } from 'node:path'
import { path, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { Attributes, askKernel, type Message, protocols } from '../../../kernel/netlink.ts'
import { deviceFilter } from './_device-filter.ts'
import { numberOf, readFixture, textOf } from './_fixture.ts'
import { linkNames } from './_rtnetlink.ts'
import { collector, counter, gauge } from './collector.ts'

const labels = ['device', 'kind']
const families = {
  bytes: counter('qdisc_bytes_total', 'Bytes that a queueing discipline let through.', { labels }),
  packets: counter('qdisc_packets_total', 'Packets that a queueing discipline let through.', { labels }),
  drops: counter('qdisc_drops_total', 'Packets that a queueing discipline dropped.', { labels }),
  requeues: counter(
    'qdisc_requeues_total',
    'Packets that a queueing discipline took back because the device was busy.',
    {
      labels,
    },
  ),
  overlimits: counter(
    'qdisc_overlimits_total',
    'How often a queueing discipline held traffic back at its limit.',
    {
      labels,
    },
  ),
  qlen: gauge('qdisc_current_queue_length', 'Packets that wait in a queueing discipline.', { labels }),
  backlog: gauge('qdisc_backlog', 'Bytes that wait in a queueing discipline.', { labels, unit: 'By' }),
} as const
type Counts = Record<keyof typeof families, number>
const names = Object.keys(families) as (keyof Counts)[]

interface Qdisc extends Counts {
  readonly device: string
  readonly kind: string
}

/** Root queueing disciplines of network devices, from rtnetlink(7). */
export const qdisc = collector({
  name: 'qdisc',
  summary: 'Root queueing disciplines',
  source: 'rtnetlink(7)',
  enabledByDefault: false,
  metrics: Object.values(families),
  options: {
    device_include: key(regex, '', 'Regular expression for devices to show; empty for all.'),
    device_exclude: key(regex, '', 'Regular expression for devices to exclude; empty for none.'),
    fixtures: key(path, '', 'Reads this directory instead of the kernel; for tests.'),
  },
  start: ({ device_include, device_exclude, fixtures }) => {
    const shows = deviceFilter({ include: device_include, exclude: device_exclude }, 'qdisc')
    return {
      collect(readings) {
        for (const one of fixtures === '' ? ask() : readQdiscs(join(fixtures, 'results.json'))) {
          if (!shows(one.device)) continue
          for (const name of names) readings.set(families[name], one[name], one.device, one.kind)
        }
      },
    }
  },
})

function readQdiscs(file: string): readonly Qdisc[] {
  const items = readFixture(file)
  if (items === undefined) throw new Error(`cannot read ${file}: not found`)
  return items
    .filter(item => numberOf(item, 'parent') === 0)
    .map(item => ({
      ...(Object.fromEntries(names.map(name => [name, numberOf(item, name)])) as Counts),
      device: textOf(item, 'ifacename'),
      kind: textOf(item, 'kind'),
    }))
}

const getQdisc = 38
/** Bytes of `struct tcmsg`. */
const headerBytes = 20
const root = 0xffffffff
const statistics = 7

function ask(): readonly Qdisc[] {
  const found: [index: number, qdisc: Omit<Qdisc, 'device'>][] = []
  askKernel(protocols.route, { type: getQdisc, payload: Buffer.alloc(headerBytes) }, message => {
    const parent = message.u32(12)
    if (parent === root || parent === 0) found.push([message.u32(4), read(message)])
  })
  const devices = linkNames()
  return found.map(([index, one]) => ({ ...one, device: devices.get(index) ?? '' }))
}

const attributes = new Attributes()
const inner = new Attributes()

/** Attributes as in linux/rtnetlink.h and linux/gen_stats.h. */
function read(message: Message): Omit<Qdisc, 'device'> {
  const one = { kind: '', bytes: 0, packets: 0, drops: 0, requeues: 0, overlimits: 0, qlen: 0, backlog: 0 }
  for (attributes.within(message, headerBytes); attributes.next(); ) {
    if (attributes.type === 1) one.kind = attributes.text()
    if (attributes.type !== statistics) continue
    for (inner.within(attributes); inner.next(); ) {
      if (inner.type === 1) {
        one.bytes = inner.u64()
        one.packets = inner.u32(8)
      } else if (inner.type === 3) {
        one.qlen = inner.u32()
        one.backlog = inner.u32(4)
        one.drops = inner.u32(8)
        one.requeues = inner.u32(12)
        one.overlimits = inner.u32(16)
      }
    }
  }
  return one
}
