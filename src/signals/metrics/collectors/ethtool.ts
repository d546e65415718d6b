import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { limitRepeats } from '../../../foundation/lib/logger.ts'
import { u64 } from '../../../foundation/lib/u64.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import type { Native } from '../../../kernel/native.ts'
import { nativeForNetlink } from '../../../kernel/netlink.ts'
import { deviceFilter } from './_device-filter.ts'
import { advertised, autonegotiate, linkModeFamilies, showModes, supported } from './_link-modes.ts'
import { netDevices } from './_net-devices.ts'
import { collector, type Family, gauge, type Readings, untyped } from './collector.ts'
import { families } from './families.ts'

const info = gauge('ethtool_info', 'Driver and firmware of a network device. The value is 1.', {
  labels: ['bus_info', 'device', 'driver', 'expansion_rom_version', 'firmware_version', 'version'],
})

const labels = ['device']
/** Statistics of nearly all drivers, by name. */
const common: Readonly<Record<string, Family>> = {
  rx_bytes: untyped('ethtool_received_bytes_total', 'Bytes that a network device received.', { labels }),
  rx_dropped: untyped(
    'ethtool_received_dropped_total',
    'Frames that a network device received and dropped.',
    { labels },
  ),
  rx_errors: untyped(
    'ethtool_received_errors_total',
    'Frames that a network device received with an error.',
    { labels },
  ),
  rx_packets: untyped('ethtool_received_packets_total', 'Packets that a network device received.', {
    labels,
  }),
  tx_bytes: untyped('ethtool_transmitted_bytes_total', 'Bytes that a network device sent.', { labels }),
  tx_errors: untyped('ethtool_transmitted_errors_total', 'Frames that a network device failed to send.', {
    labels,
  }),
  tx_packets: untyped('ethtool_transmitted_packets_total', 'Packets that a network device sent.', { labels }),
}

/** Commands of SIOCETHTOOL (linux/ethtool.h) with the size of their structures. */
const settings = { command: 1, bytes: 44 } as const
const driver = { command: 3, bytes: 196, statistics: 180 } as const
const strings = { command: 0x1b, header: 12, bytes: 32, statistics: 1 } as const
const statistics = { command: 0x1d, header: 8, bytes: 8 } as const
/** Maximum plausible number of statistics. */
const mostStatistics = 32_768

/** Drivers, link modes and statistics of network devices, over the ioctl SIOCETHTOOL (ethtool(8)). */
export const ethtool = collector({
  name: 'ethtool',
  summary: 'Drivers, link modes and statistics of network devices',
  source: 'ethtool(8)',
  enabledByDefault: false,
  metrics: [info, ...Object.values(common), ...linkModeFamilies],
  dynamic: 'One metric for each statistic of a driver that `metrics_include` matches.',
  options: {
    device_include: key(regex, '', 'Regular expression for devices to show; empty for all.'),
    device_exclude: key(regex, '', 'Regular expression for devices to exclude; empty for none.'),
    metrics_include: key(regex, '.*', 'Regular expression for statistics to show.'),
  },
  start: ({ device_include, device_exclude, metrics_include }, { host, log }) => {
    const shows = deviceFilter({ include: device_include, exclude: device_exclude }, 'ethtool')
    const wanted = linearRegExp(metrics_include)
    const report = limitRepeats(log, 3_600_000)
    const known = families(name => (wanted.test(name) ? (common[name] ?? statisticFamily(name)) : undefined))
    return {
      collect(readings) {
        const native = nativeForNetlink()
        const devices = netDevices(host.sys)
        if (devices.length === 0) throw new Error('no network device found')
        for (const device of devices.filter(shows)) {
          for (const show of [showSettings, showDriver]) {
            try {
              show(native, device, readings, known)
            } catch (error) {
              const { code } = error as NodeJS.ErrnoException
              if (code === undefined) throw error
              // A driver may refuse any request, as most without hardware do.
              const level = code === 'ENOTSUP' ? 'debug' : 'warn'
              report(level, `${device} ${code}`, 'cannot query a network device', { device, error })
            }
          }
        }
      },
    }
  },
})

function ask(native: Native, device: string, command: number, bytes: number): Buffer {
  const data = Buffer.alloc(bytes)
  data.writeUInt32LE(command)
  native.ethtool(device, data)
  return data
}

function showSettings(native: Native, device: string, readings: Readings): void {
  const found = ask(native, device, settings.command, settings.bytes)
  showModes(readings, supported, device, found.readUInt32LE(4))
  showModes(readings, advertised, device, found.readUInt32LE(8))
  readings.set(autonegotiate, found[18]!, device)
}

function showDriver(native: Native, device: string, readings: Readings, known: FamilyOf): void {
  const found = ask(native, device, driver.command, driver.bytes)
  const [name, version, firmware, bus, rom] = [4, 36, 68, 100, 132].map(at => textAt(found, at))
  readings.setAll(info, 1, [bus!, device, name!, rom!, firmware!, version!])
  showStatistics(native, device, found.readUInt32LE(driver.statistics), readings, known)
}

type FamilyOf = (name: string) => Family | undefined

function showStatistics(
  native: Native,
  device: string,
  count: number,
  readings: Readings,
  known: FamilyOf,
): void {
  if (count === 0) return
  if (count > mostStatistics) throw new Error(`cannot read ${device}: too many statistics (${count})`)
  const names = Buffer.alloc(strings.header + count * strings.bytes)
  names.writeUInt32LE(strings.command)
  names.writeUInt32LE(strings.statistics, 4)
  names.writeUInt32LE(count, 8)
  native.ethtool(device, names)
  const values = Buffer.alloc(statistics.header + count * statistics.bytes)
  values.writeUInt32LE(statistics.command)
  values.writeUInt32LE(count, 4)
  native.ethtool(device, values)
  for (const [family, value] of shownStatistics(names, values, count, known))
    readings.set(family, value, device)
}

/** Statistics to show. Those that would get the same name are omitted, as they would be ambiguous. */
export function shownStatistics(
  names: Buffer,
  values: Buffer,
  count: number,
  known: FamilyOf,
): readonly (readonly [family: Family, value: number])[] {
  // By name: names that differ only in case would make several families of one name.
  const shown = new Map<string, readonly [Family, number] | undefined>()
  for (let i = 0; i < count; i++) {
    const name = textAt(names, strings.header + i * strings.bytes)
    const family = name === '' ? undefined : known(plainName(name))
    if (family === undefined) continue
    const at = statistics.header + i * statistics.bytes
    const value = u64(values, at)
    shown.set(family.name, shown.has(family.name) ? undefined : [family, value])
  }
  return [...shown.values()].filter(one => one !== undefined)
}

/** A field of 32 bytes, terminated by a zero if it is shorter. */
function textAt(bytes: Buffer, at: number): string {
  const zero = bytes.indexOf(0, at)
  return utf8Text(bytes, at, zero < 0 || zero > at + strings.bytes ? at + strings.bytes : zero)
}

/** Metric name: runs of invalid characters, with underscores around them, become one underscore. */
function plainName(name: string): string {
  return name.replace(/_*[^0-9A-Za-z_]+_*/g, '_')
}

/** Family of a statistic; `rx` and `tx` are written out, as in the replaced exporter. */
export function statisticFamily(name: string): Family {
  const metric = name
    .toLowerCase()
    .replace(/^_+/, '')
    .replace(/(^|_)rx(_|$)/g, '$1received$2')
    .replace(/(^|_)tx(_|$)/g, '$1transmitted$2')
  return untyped(`ethtool_${metric}`, `The statistic ${name} of a network device's driver.`, { labels })
}
