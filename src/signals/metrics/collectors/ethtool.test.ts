import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'
import { advertised, showModes, supported } from './_link-modes.ts'
import { untyped } from './collector.ts'
import { ethtool, shownStatistics, statisticFamily } from './ethtool.ts'

test('a driver, its link modes and its statistics are shown', { skip: withoutNamespaces }, t => {
  const namespace = new NetworkNamespace(t, [
    'link add va type veth peer name vb',
    'link set va up',
    'link set vb up',
  ])
  const { lines, outcome } = namespace.read('ethtool', { device_include: '^v' })
  assert.equal(outcome, 'success')
  const named = (name: string) =>
    lines.filter(
      line => line.startsWith(`node_${name}{device="va"`) || line === `# TYPE node_${name} untyped`,
    )
  assert.equal(named('ethtool_peer_ifindex').length, 2)
  assert.ok(
    lines.some(line =>
      /^node_ethtool_info\{bus_info="",device="va",driver="veth",.*version="1\.0"\} 1$/.test(line),
    ),
  )
  assert.deepEqual(named('network_autonegotiate'), ['node_network_autonegotiate{device="va"} 0'])
  assert.deepEqual(named('network_pause_supported'), ['node_network_pause_supported{device="va"} 0'])
  const { lines: some } = namespace.read('ethtool', { device_exclude: '^(lo|vb)$', metrics_include: '^peer' })
  assert.deepEqual(
    some.filter(line => line.startsWith('node_ethtool_')).map(line => line.replace(/[{ ].*/, '')),
    ['node_ethtool_info', 'node_ethtool_peer_ifindex'],
  )
})

test('devices that tell nothing are no failure; that there are none is one', {
  skip: withoutNamespaces,
}, async t => {
  const { lines, outcome } = new NetworkNamespace(t, []).read('ethtool')
  assert.deepEqual([lines, outcome], [[], 'success'])
  assert.equal((await readWith(ethtool, {}, treeOf(t, {}))).outcome, 'no_data')
  const { reason } = await readWith(ethtool, {}, treeOf(t, { 'sys/class/net/bonding_masters': '' }))
  assert.equal(reason, 'no network device found')
})

/** The structures that a driver fills in with its statistics. */
function filled(statistics: readonly (readonly [name: string, value: bigint])[]): [Buffer, Buffer, number] {
  const names = Buffer.alloc(12 + statistics.length * 32)
  const values = Buffer.alloc(8 + statistics.length * 8)
  for (const [i, [name, value]] of statistics.entries()) {
    names.write(name, 12 + i * 32, 'latin1')
    values.writeBigUInt64LE(value, 8 + i * 8)
  }
  return [names, values, statistics.length]
}

test('statistics whose names become one are left out, and so are those without a name', () => {
  const made = new Map<string, ReturnType<typeof untyped>>()
  const known = (name: string) => {
    const family = made.get(name) ?? untyped(`x_${name}`, 'A test.')
    made.set(name, family)
    return name === 'unwanted' ? undefined : family
  }
  const [names, values, count] = filled([
    ['rx bytes', 2n ** 53n + 2n],
    ['tx[0].packets', 5n],
    ['', 6n],
    ['rx_bytes', 7n],
    ['unwanted', 8n],
    ['a-name-that-is-32-characters-long', 9n],
    ['tx_0_packets', 10n],
    ['drops', 2n ** 53n + 2n],
  ])
  const shown = shownStatistics(names, values, count, known).map(([family, value]) => [family.name, value])
  assert.deepEqual(shown, [
    ['x_a_name_that_is_32_characters_lon', 9],
    ['x_drops', 2 ** 53 + 2],
  ])
})

test('names that differ in their case alone become one too', () => {
  const [names, values, count] = filled([
    ['rx_drop', 1n],
    ['RX_DROP', 2n],
    ['tx_drop', 3n],
  ])
  const shown = shownStatistics(names, values, count, statisticFamily)
  assert.deepEqual(
    shown.map(([{ name }]) => name),
    ['ethtool_transmitted_drop'],
  )
})

test('rx and tx are written out where they are words', () => {
  const name = (of: string) => statisticFamily(of).name
  assert.deepEqual(
    ['rx_queue_0_bytes', 'rx0_drops', 'tx_tx_timeouts', '_TX_Errors', 'prio_rx', 'rxtx', '0_rx_x'].map(name),
    [
      'ethtool_received_queue_0_bytes',
      'ethtool_rx0_drops',
      'ethtool_transmitted_tx_timeouts',
      'ethtool_transmitted_errors',
      'ethtool_prio_received',
      'ethtool_rxtx',
      'ethtool_0_received_x',
    ],
  )
})

test('bits of link modes are speeds, ports and abilities', () => {
  const seen: string[] = []
  const readings = {
    set: ({ name }: { name: string }, value: number, ...labels: string[]) =>
      void seen.push(`${name} ${labels.join()} ${value}`),
    setAll: () => undefined,
    setDistribution: () => undefined,
  }
  // 1000baseT/Full, autonegotiation, TP, asymmetric pause, 25000baseCR/Full.
  const modes = ((1 << 5) | (1 << 6) | (1 << 7) | (1 << 14) | (1 << 31)) >>> 0
  showModes(readings, supported, 'eth0', modes)
  assert.deepEqual(seen, [
    'network_supported_speed_bytes eth0,full,1000baseT 125000000',
    'network_supported_speed_bytes eth0,full,25000baseCR 3125000000',
    'network_supported_port_info eth0,TP 1',
    'network_autonegotiate_supported eth0 1',
    'network_pause_supported eth0 0',
    'network_asymmetricpause_supported eth0 1',
  ])
  seen.length = 0
  showModes(readings, advertised, 'eth0', 1 << 0)
  assert.deepEqual(seen.slice(0, 2), [
    'network_advertised_speed_bytes eth0,half,10baseT 1250000',
    'network_autonegotiate_advertised eth0 0',
  ])
})
