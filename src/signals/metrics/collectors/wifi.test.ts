import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hostTree, readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { withWireless } from '../../../../test/helpers/host-needs.ts'
import { attribute, Range, text, u32 } from '../../../kernel/netlink.ts'
import { readInterface, readNetwork, readStation } from './_nl80211.ts'
import { wifi } from './wifi.ts'

const fixtures = join(hostTree, 'wifi')

test('interfaces and stations of a fixture are shown', async () => {
  const { lines, outcome } = await readWith(wifi, { fixtures })
  assert.equal(outcome, 'success')
  const station = '{device="wlp3s0",mac_address="02:00:5e:00:53:01"}'
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_wifi_interface_frequency_hertz{device="p2p-dev"} 0',
      'node_wifi_interface_frequency_hertz{device="wlp3s0"} 5.18e+09',
      `node_wifi_station_beacon_loss_total${station} 2`,
      `node_wifi_station_connected_seconds_total${station} 93600`,
      `node_wifi_station_inactive_seconds${station} 0.012`,
      'node_wifi_station_info{bssid="02:00:5e:00:53:01",device="wlp3s0",mode="client",ssid="Café \\"5\\""} 1',
      `node_wifi_station_receive_bits_per_second${station} 8.667e+08`,
      `node_wifi_station_receive_bytes_total${station} 5e+09`,
      `node_wifi_station_received_packets_total${station} 4.1e+06`,
      `node_wifi_station_signal_dbm${station} -61`,
      `node_wifi_station_transmit_bits_per_second${station} 7.8e+08`,
      `node_wifi_station_transmit_bytes_total${station} 7e+07`,
      `node_wifi_station_transmit_failed_total${station} 1`,
      `node_wifi_station_transmit_retries_total${station} 44`,
      `node_wifi_station_transmitted_packets_total${station} 310000`,
    ],
  )
})

test('a fixture that is none is an error', async t => {
  for (const content of ['', '[', '7', '[{"name": 7}]']) {
    const root = treeOf(t, { 'proc/interfaces.json': content })
    assert.equal((await readWith(wifi, { fixtures: join(root, 'proc') })).outcome, 'failed', content)
  }
  assert.match((await readWith(wifi, { fixtures: '/no/such/place' })).reason, /interfaces\.json not found/)
})

test('a kernel without wireless networks has no data', { skip: withWireless }, async () => {
  assert.equal((await readWith(wifi)).outcome, 'no_data')
})

/** A message of nl80211: the header of generic netlink, then attributes. */
function message(...attributes: readonly Buffer[]): Range {
  const bytes = Buffer.concat([Buffer.alloc(4), ...attributes])
  return new Range().reset(bytes, 0, bytes.length)
}

const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}
const nested = (type: number, ...attributes: readonly Buffer[]): Buffer =>
  attribute(type, Buffer.concat(attributes))
const mac = Buffer.from('02005e005301', 'hex')

test('an interface is known by its index and address', () => {
  const found = readInterface(
    message(attribute(3, u32(4)), attribute(4, text('wlan0')), attribute(6, mac), attribute(38, u32(2437))),
  )
  assert.deepEqual([found.name, found.megahertz], ['wlan0', 2437])
  assert.deepEqual(Buffer.concat(found.id), Buffer.concat([attribute(3, u32(4)), attribute(6, mac)]))
  assert.equal(readInterface(message(attribute(0x99, u64(1n)))).name, '')
})

test('of the networks around, the one with a status is the own one', () => {
  const rates = Buffer.from('01020c12', 'hex')
  const ssid = Buffer.concat([Uint8Array.of(0, 4), Buffer.from('lab\xff', 'latin1')])
  const elements = attribute(6, Buffer.concat([rates, ssid]))
  assert.equal(readNetwork(message(nested(47, attribute(1, mac), elements))), undefined)
  assert.deepEqual(readNetwork(message(nested(47, attribute(1, mac), elements, attribute(9, u32(2))))), {
    bssid: '02:00:5e:00:53:01',
    ssid: 'lab\ufffd',
    status: 2,
  })
  // An element that says it is longer than what is there.
  const cut = attribute(6, Uint8Array.of(0, 9, 0x61))
  assert.equal(readNetwork(message(nested(47, cut, attribute(9, u32(1)))))?.ssid, '')
})

test('a station has the wider of its counters and rates', () => {
  const rate = (type: number, ...parts: readonly Buffer[]) => nested(type, ...parts)
  const u16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer)
  const found = readStation(
    message(
      attribute(6, mac),
      nested(
        21,
        attribute(1, u32(250)),
        attribute(2, u32(1)),
        attribute(3, u32(77)),
        attribute(7, Uint8Array.of(0xc4)),
        rate(8, attribute(1, u16(650))),
        rate(14, attribute(1, u16(0)), attribute(5, u32(20_000))),
        attribute(9, u32(3)),
        attribute(10, u32(4)),
        attribute(11, u32(5)),
        attribute(12, u32(6)),
        attribute(16, u32(7200)),
        attribute(18, u32(8)),
        attribute(23, u64(5_000_000_000n)),
      ),
    ),
  )
  assert.deepEqual(found, {
    address: '02:00:5e:00:53:01',
    connectedSeconds: 7200,
    inactiveSeconds: 0.25,
    receiveRate: 2_000_000_000,
    transmitRate: 65_000_000,
    receivedBytes: 5_000_000_000,
    transmittedBytes: 77,
    receivedPackets: 3,
    transmittedPackets: 4,
    signalDbm: -60,
    retries: 5,
    failed: 6,
    beaconLoss: 8,
  })
  assert.equal(readStation(message(attribute(6, mac))), undefined)
  assert.throws(() => readStation(message(nested(21, attribute(1, Uint8Array.of(1))))), /4 bytes at 0 of 1/)
})
