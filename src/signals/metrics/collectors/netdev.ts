import { ipText } from '../../../foundation/lib/ip-text.ts'
import { Scanner } from '../../../foundation/lib/scanner.ts'
import type { OtelName } from '../../../foundation/model/collector.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { Attributes, askKernel, protocols } from '../../../kernel/netlink.ts'
import { deviceFilter } from './_device-filter.ts'
import { eachLink, linkAttribute, linkCounters, linkHeaderBytes, linkNames } from './_rtnetlink.ts'
import { collector, counter, type Env, type Family, gauge, type Readings } from './collector.ts'

/** Name → HELP text, for families with and without the label `ifalias`. */
const counts = {
  receive_bytes: 'Bytes that a network device received.',
  receive_packets: 'Packets that a network device received.',
  receive_errs: 'Packets that a network device received with an error.',
  receive_drop: 'Packets that a network device received and dropped.',
  receive_fifo: 'Overruns of the receive buffer of a network device.',
  receive_frame: 'Packets that a network device received with an error in their frame.',
  receive_compressed: 'Compressed packets that a network device received.',
  receive_multicast: 'Multicast packets that a network device received.',
  receive_nohandler: 'Packets that a network device received and nothing took.',
  transmit_bytes: 'Bytes that a network device sent.',
  transmit_packets: 'Packets that a network device sent.',
  transmit_errs: 'Packets that a network device failed to send.',
  transmit_drop: 'Packets that a network device dropped instead of sending them.',
  transmit_fifo: 'Underruns of the send buffer of a network device.',
  transmit_colls: 'Collisions that a network device saw while it sent.',
  transmit_carrier: 'Packets that a network device failed to send because it had no carrier or the like.',
  transmit_compressed: 'Compressed packets that a network device sent.',
  receive_errors: 'Packets that a network device received with an error.',
  transmit_errors: 'Packets that a network device failed to send.',
  receive_dropped: 'Packets that a network device received and dropped, missed ones not included.',
  transmit_dropped: 'Packets that a network device dropped instead of sending them.',
  multicast: 'Multicast packets that a network device received.',
  collisions: 'Collisions that a network device saw while it sent.',
  receive_length_errors: 'Packets that a network device received with an invalid length.',
  receive_over_errors: 'Packets that did not fit the receive ring of a network device.',
  receive_crc_errors: 'Packets that a network device received with a wrong checksum.',
  receive_frame_errors: 'Packets that a network device received with a wrong alignment.',
  receive_fifo_errors: 'Overruns of the receive buffer of a network device.',
  receive_missed_errors: 'Packets that a network device missed because the host was too slow.',
  transmit_aborted_errors: 'Packets whose sending a network device gave up.',
  transmit_carrier_errors: 'Packets that a network device failed to send because it lost the carrier.',
  transmit_fifo_errors: 'Underruns of the send buffer of a network device.',
  transmit_heartbeat_errors: 'Errors of the heartbeat test of a network device.',
  transmit_window_errors: 'Late collisions that a network device saw while it sent.',
} as const
type Name = keyof typeof counts

/** Columns of /proc/net/dev, each with the kernel fields that it sums (dev_seq_printf_stats). */
const columns: readonly (readonly [name: Name, fields: readonly number[]])[] = [
  ['receive_bytes', [2]],
  ['receive_packets', [0]],
  ['receive_errs', [4]],
  ['receive_drop', [6, 15]],
  ['receive_fifo', [14]],
  ['receive_frame', [13, 10, 11, 12]],
  ['receive_compressed', [21]],
  ['receive_multicast', [8]],
  ['transmit_bytes', [3]],
  ['transmit_packets', [1]],
  ['transmit_errs', [5]],
  ['transmit_drop', [7]],
  ['transmit_fifo', [18]],
  ['transmit_colls', [9]],
  ['transmit_carrier', [17, 16, 19, 20]],
  ['transmit_compressed', [22]],
]
const summed = [...columns, ['receive_nohandler', [23]] as const]
/** Names of the columns in detailed mode, if the file has no finer ones. */
const detailedColumns: Readonly<Partial<Record<Name, Name>>> = {
  receive_errs: 'receive_errors',
  receive_drop: 'receive_dropped',
  transmit_errs: 'transmit_errors',
  transmit_drop: 'transmit_dropped',
}

const addressInfo = gauge('network_address_info', 'Addresses of network devices. The value is 1.', {
  labels: ['address', 'device', 'netmask', 'scope'],
})

/** Counters in the semantic conventions; only one of two names for the same value is used. */
const conventions: Readonly<Partial<Record<Name, OtelName>>> = {
  receive_bytes: traffic('io', 'By', 'receive'),
  transmit_bytes: traffic('io', 'By', 'transmit'),
  receive_packets: traffic('packet.count', '{packet}', 'receive', 'system.device'),
  transmit_packets: traffic('packet.count', '{packet}', 'transmit', 'system.device'),
  receive_errs: traffic('errors', '{error}', 'receive'),
  transmit_errs: traffic('errors', '{error}', 'transmit'),
  receive_errors: traffic('errors', '{error}', 'receive'),
  transmit_errors: traffic('errors', '{error}', 'transmit'),
  receive_drop: traffic('packet.dropped', '{packet}', 'receive'),
  transmit_drop: traffic('packet.dropped', '{packet}', 'transmit'),
  receive_dropped: traffic('packet.dropped', '{packet}', 'receive'),
  transmit_dropped: traffic('packet.dropped', '{packet}', 'transmit'),
  receive_fifo: errors('fifo', 'receive'),
  receive_frame: errors('frame', 'receive'),
  transmit_fifo: errors('fifo', 'transmit'),
  transmit_carrier: errors('carrier', 'transmit'),
  receive_length_errors: errors('length', 'receive'),
  receive_over_errors: errors('over', 'receive'),
  receive_crc_errors: errors('crc', 'receive'),
  receive_frame_errors: errors('frame', 'receive'),
  receive_fifo_errors: errors('fifo', 'receive'),
  receive_missed_errors: errors('missed', 'receive'),
  transmit_aborted_errors: errors('aborted', 'transmit'),
  transmit_carrier_errors: errors('carrier', 'transmit'),
  transmit_fifo_errors: errors('fifo', 'transmit'),
  transmit_heartbeat_errors: errors('heartbeat', 'transmit'),
  transmit_window_errors: errors('window', 'transmit'),
}

/** Options of error counters, by kind. */
function errors(type: string, direction: 'receive' | 'transmit'): OtelName {
  return {
    name: 'hw.errors',
    unit: '{error}',
    kind: 'counter',
    attributes: { device: 'hw.id' },
    constant: { 'hw.type': 'network', 'error.type': type, 'network.io.direction': direction },
  }
}

function traffic(
  metric: string,
  unit: string,
  direction: 'receive' | 'transmit',
  device = 'network.interface.name',
): OtelName {
  return {
    name: `system.network.${metric}`,
    unit,
    kind: 'counter',
    attributes: { device },
    constant: { 'network.io.direction': direction },
  }
}

type Families = Readonly<Record<Name, Family>>

function familiesWith(labels: readonly string[]): Families {
  const made = Object.entries(counts).map(([name, help]) => {
    const otel = conventions[name as Name]
    return [name, counter(`network_${name}_total`, help, otel === undefined ? { labels } : { labels, otel })]
  })
  return Object.fromEntries(made) as Families
}
const byDevice = familiesWith(['device'])
const byAlias = familiesWith(['device', 'ifalias'])

/** Traffic of network devices, from rtnetlink(7) or /proc/net/dev. */
export const netdev = collector({
  name: 'netdev',
  summary: 'Traffic of network devices',
  source: 'rtnetlink(7), /proc/net/dev',
  enabledByDefault: true,
  metrics: [...Object.values(byDevice), addressInfo],
  options: {
    device_include: key(list(regex), [], 'Regular expressions for devices to show; empty for all.'),
    device_exclude: key(list(regex), [], 'Regular expressions for devices to exclude.'),
    address_info: key(boolean, false, 'Shows addresses of devices.'),
    enable_detailed_metrics: key(boolean, false, 'Uses the kernel’s own, finer counters and names.'),
    label_ifalias: key(boolean, false, 'Adds the label `ifalias`.'),
    netlink: key(boolean, true, 'Asks over netlink instead of reading /proc/net/dev.'),
  },
  start: (options, { host, log }) => {
    const { device_include, device_exclude, enable_detailed_metrics: isDetailed, label_ifalias } = options
    const shows = deviceFilter({ include: device_include, exclude: device_exclude }, 'netdev')
    const families = label_ifalias ? byAlias : byDevice
    const addon = options.netlink ? loadNative() : undefined
    if (addon instanceof Unsupported)
      log.warn('reading network counters from /proc/net/dev instead of netlink', {
        reason: addon.reason,
        hint: addon.hint,
      })
    const read =
      addon === undefined || addon instanceof Unsupported
        ? fileReader(host, families, { shows, isDetailed, isAliased: label_ifalias })
        : linkReader(families, { shows, isDetailed, isAliased: label_ifalias })
    return {
      collect(readings) {
        read(readings)
        if (options.address_info) readAddresses(readings)
      },
    }
  },
})

interface ReaderOptions {
  readonly shows: (device: string) => boolean
  readonly isDetailed: boolean
  readonly isAliased: boolean
}

function linkReader(families: Families, { shows, isDetailed, isAliased }: ReaderOptions) {
  const shown: readonly (readonly [family: Family, fields: readonly number[]])[] = isDetailed
    ? linkCounters.map((name, field) => [families[name], [field]])
    : summed.map(([name, fields]) => [families[name], fields])
  const attributes = new Attributes()
  const values = new Float64Array(linkCounters.length)
  return (readings: Readings): void =>
    eachLink(link => {
      let device = ''
      let alias = isAliased ? '' : undefined
      let hasCounters = false
      for (attributes.within(link, linkHeaderBytes); attributes.next(); ) {
        if (attributes.type === linkAttribute.name) device = attributes.text()
        else if (attributes.type === linkAttribute.alias && isAliased) alias = attributes.text()
        else if (attributes.type === linkAttribute.counters) {
          hasCounters = true
          // The last field exists since Linux 4.6.
          const known = Math.min(values.length, attributes.length >> 3)
          for (let i = 0; i < values.length; i++) values[i] = i < known ? attributes.u64(i * 8) : 0
        }
      }
      if (!hasCounters || !shows(device)) return
      for (const [family, fields] of shown) {
        let value = 0
        for (const field of fields) value += values[field]!
        readings.set(family, value, device, alias)
      }
    })
}

function fileReader(host: Env['host'], families: Families, { shows, isDetailed, isAliased }: ReaderOptions) {
  const shown = columns.map(([name]) => families[(isDetailed ? detailedColumns[name] : undefined) ?? name])
  const scan = new Scanner(Buffer.alloc(0))
  return (readings: Readings): void => {
    scan.reset(host.proc.bytes('net/dev'))
    if (!scan.line() || !scan.line() || !scan.starts(' face |bytes'))
      throw new Error('cannot read /proc/net/dev: two header lines expected')
    const devices: [name: string, values: number[]][] = []
    while (scan.line()) {
      const device = scan.until(':').trim()
      const values = shown.map(() => scan.number())
      if (device === '' || values.some(Number.isNaN))
        throw new Error(`cannot read /proc/net/dev: a line has no device, or not ${shown.length} numbers`)
      if (shows(device)) devices.push([device, values])
    }
    for (const [device, values] of devices) {
      // Only now, as reading another file reuses the buffer of this one.
      const alias = isAliased ? (host.sys.find(`class/net/${device}/ifalias`) ?? '') : undefined
      for (const [i, family] of shown.entries()) readings.set(family, values[i]!, device, alias)
    }
  }
}

const getAddress = 22
/** Bytes of `struct ifaddrmsg`. */
const addressHeaderBytes = 8
const addressAttribute = { address: 1, local: 2 } as const

function readAddresses(readings: Readings): void {
  const names = linkNames()
  const attributes = new Attributes()
  askKernel(protocols.route, { type: getAddress, payload: Buffer.alloc(addressHeaderBytes) }, message => {
    let address = ''
    let local = ''
    for (attributes.within(message, addressHeaderBytes); attributes.next(); ) {
      if (attributes.type === addressAttribute.address) address = ipText(attributes.view())
      else if (attributes.type === addressAttribute.local) local = ipText(attributes.view())
    }
    // For a point-to-point link, `address` is the remote end.
    const own = local || address
    const device = names.get(message.u32(4))
    if (own === '' || device === undefined) return
    readings.setAll(addressInfo, 1, [own, device, String(message.u8(1)), scopeOf(own)])
  })
}

/** Scope of an address, in the terms of the replaced exporter. */
function scopeOf(address: string): string {
  if (/^(127\.|169\.254\.|224\.0\.0\.|::1$|fe[89ab].:|ff.2:)/.test(address)) return 'link-local'
  if (/^ff.1:/.test(address)) return 'interface-local'
  return /^(0\.0\.0\.0|255\.255\.255\.255|::)$|^(22[4-9]|23\d)\.|^ff..:/.test(address) ? '' : 'global'
}
