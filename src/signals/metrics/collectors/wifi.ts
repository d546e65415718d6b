import { join } from 'node:path'
import { macText } from '../../../foundation/lib/ip-text.ts'
import { path } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { type Fields, numberOf, readFixture, textOf } from './_fixture.ts'
import { kernelWifi, type WifiSource, type WifiStation } from './_nl80211.ts'
import { collector, counter, type Family, gauge, NoData } from './collector.ts'

const frequency = gauge('wifi_interface_frequency_hertz', 'Frequency that a wireless interface works at.', {
  labels: ['device'],
})
const network = gauge(
  'wifi_station_info',
  'The network that a wireless interface is part of. The value is 1.',
  {
    labels: ['bssid', 'device', 'mode', 'ssid'],
  },
)

const labels = ['device', 'mac_address']
const stationFamilies: readonly (readonly [field: Exclude<keyof WifiStation, 'address'>, family: Family])[] =
  [
    [
      'connectedSeconds',
      counter('wifi_station_connected_seconds_total', 'Time since a station connected.', { labels }),
    ],
    [
      'inactiveSeconds',
      gauge('wifi_station_inactive_seconds', 'Time since a station was last active.', { labels }),
    ],
    [
      'receiveRate',
      gauge('wifi_station_receive_bits_per_second', 'Rate of the last packet from a station.', {
        labels,
        unit: 'bit/s',
      }),
    ],
    [
      'transmitRate',
      gauge('wifi_station_transmit_bits_per_second', 'Rate of the last packet to a station.', {
        labels,
        unit: 'bit/s',
      }),
    ],
    [
      'receivedBytes',
      counter('wifi_station_receive_bytes_total', 'Bytes received from a station.', { labels }),
    ],
    [
      'transmittedBytes',
      counter('wifi_station_transmit_bytes_total', 'Bytes sent to a station.', { labels }),
    ],
    [
      'receivedPackets',
      counter('wifi_station_received_packets_total', 'Packets received from a station.', { labels }),
    ],
    [
      'transmittedPackets',
      counter('wifi_station_transmitted_packets_total', 'Packets sent to a station.', { labels }),
    ],
    [
      'signalDbm',
      gauge('wifi_station_signal_dbm', 'Strength of the signal of a station, in dBm.', {
        labels,
        unit: 'dB[mW]',
      }),
    ],
    [
      'retries',
      counter('wifi_station_transmit_retries_total', 'Packets to a station that were sent once more.', {
        labels,
      }),
    ],
    [
      'failed',
      counter('wifi_station_transmit_failed_total', 'Packets to a station that could not be sent.', {
        labels,
      }),
    ],
    [
      'beaconLoss',
      counter('wifi_station_beacon_loss_total', 'How often the beacon of a station was lost.', { labels }),
    ],
  ]

/** Wireless interfaces and their links, from nl80211. */
export const wifi = collector({
  name: 'wifi',
  summary: 'Wireless interfaces and stations',
  source: 'nl80211',
  enabledByDefault: false,
  metrics: [frequency, network, ...stationFamilies.map(([, family]) => family)],
  options: {
    fixtures: key(path, '', 'Reads this directory instead of the kernel; for tests.'),
  },
  start: ({ fixtures }) => ({
    collect(readings) {
      const source = fixtures === '' ? kernelWifi() : fixtureWifi(fixtures)
      if (source === undefined)
        throw new NoData('this kernel has no wireless support: netlink family nl80211 not found')
      for (const one of source.interfaces()) {
        const { name } = one
        if (name === '') continue
        readings.set(frequency, one.megahertz * 1_000_000, name)
        const part = source.network(one)
        if (part !== undefined)
          readings.setAll(network, 1, [part.bssid, name, modeOf(part.status), part.ssid])
        for (const station of source.stations(one))
          for (const [field, family] of stationFamilies)
            readings.set(family, station[field], name, station.address)
      }
    },
  }),
})

/** By `enum nl80211_bss_status`: authenticated, associated, joined. */
function modeOf(status: number): string {
  return ['client', 'client', 'ad-hoc'][status] ?? 'unknown'
}

/** Wireless data from files: `interfaces.json` and, for each interface, `bss.json` and `stationinfo.json`. */
function fixtureWifi(directory: string): WifiSource {
  return {
    interfaces() {
      const items = readFixture(join(directory, 'interfaces.json'))
      if (items === undefined) throw new Error(`cannot read ${directory}: interfaces.json not found`)
      return items.map(item => ({
        name: textOf(item, 'name'),
        megahertz: numberOf(item, 'frequency'),
        id: [],
      }))
    },
    network({ name }) {
      const item = readFixture(join(directory, name, 'bss.json'))?.[0]
      if (item === undefined) return undefined
      return { bssid: addressOf(item, 'bssid'), ssid: textOf(item, 'ssid'), status: numberOf(item, 'status') }
    },
    stations: ({ name }) =>
      (readFixture(join(directory, name, 'stationinfo.json')) ?? []).map(item => ({
        address: addressOf(item, 'hardwareaddr'),
        connectedSeconds: numberOf(item, 'connected') / 1e9,
        inactiveSeconds: numberOf(item, 'inactive') / 1e9,
        receiveRate: numberOf(item, 'receivebitrate'),
        transmitRate: numberOf(item, 'transmitbitrate'),
        receivedBytes: numberOf(item, 'receivedbytes'),
        transmittedBytes: numberOf(item, 'transmittedbytes'),
        receivedPackets: numberOf(item, 'receivedpackets'),
        transmittedPackets: numberOf(item, 'transmittedpackets'),
        signalDbm: numberOf(item, 'signal'),
        retries: numberOf(item, 'transmitretries'),
        failed: numberOf(item, 'transmitfailed'),
        beaconLoss: numberOf(item, 'beaconloss'),
      })),
  }
}

function addressOf(item: Fields, name: string): string {
  return macText(Buffer.from(textOf(item, name), 'base64'))
}
