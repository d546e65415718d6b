import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'
import { netdev } from './netdev.ts'

const fromFile = { netlink: false }

test('columns of the file are counters', async () => {
  const { lines, outcome } = await readWith(netdev, { ...fromFile, device_include: ['^eth'] })
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_network_receive_bytes_total{device="eth0"} 1.8446744073709552e+19',
      'node_network_receive_compressed_total{device="eth0"} 0',
      'node_network_receive_drop_total{device="eth0"} 12',
      'node_network_receive_errs_total{device="eth0"} 3',
      'node_network_receive_fifo_total{device="eth0"} 1',
      'node_network_receive_frame_total{device="eth0"} 2',
      'node_network_receive_multicast_total{device="eth0"} 90412',
      'node_network_receive_packets_total{device="eth0"} 7.300211e+06',
      'node_network_transmit_bytes_total{device="eth0"} 8.12003311e+08',
      'node_network_transmit_carrier_total{device="eth0"} 8',
      'node_network_transmit_colls_total{device="eth0"} 7',
      'node_network_transmit_compressed_total{device="eth0"} 9',
      'node_network_transmit_drop_total{device="eth0"} 5',
      'node_network_transmit_errs_total{device="eth0"} 4',
      'node_network_transmit_fifo_total{device="eth0"} 6',
      'node_network_transmit_packets_total{device="eth0"} 4.410021e+06',
    ],
  )
})

test('devices are chosen by lists', async () => {
  const devices = async (options: Record<string, unknown>) => {
    const { lines } = await readWith(netdev, { ...fromFile, ...options })
    return lines.flatMap(line => /^node_network_receive_bytes_total\{device="(.*)"\}/.exec(line)?.[1] ?? [])
  }
  assert.deepEqual(await devices({}), ['br-4f2a91', 'eth0', 'lo'])
  assert.deepEqual(await devices({ device_exclude: ['^lo$', '^br-'] }), ['eth0'])
  assert.deepEqual(await devices({ device_include: ['^lo$', '^br-'] }), ['br-4f2a91', 'lo'])
  await assert.rejects(devices({ device_include: ['a'], device_exclude: ['b'] }), /both set/)
})

test('finer names and aliases are for those who ask', async () => {
  const { lines } = await readWith(netdev, {
    ...fromFile,
    enable_detailed_metrics: true,
    label_ifalias: true,
  })
  assert.ok(lines.includes('node_network_receive_errors_total{device="eth0",ifalias="uplink \\"A\\""} 3'))
  assert.ok(lines.includes('node_network_receive_dropped_total{device="lo",ifalias=""} 0'))
  assert.ok(!lines.some(line => /_(errs|drop)_total/.test(line)))
})

test('what is no table is an error', async t => {
  const header = 'Inter-|   Receive |  Transmit\n face |bytes    packets errs\n'
  const read = (table: string) => readWith(netdev, fromFile, treeOf(t, { 'proc/net/dev': table }))
  assert.deepEqual(await read(header), { lines: [], outcome: 'success', reason: '' })
  assert.match((await read(`${header}eth0: 1 2 3\n`)).reason, /has no device, or not 16 numbers/)
  assert.match((await read(`${header}eth0 1 2 3\n`)).reason, /has no device, or not 16 numbers/)
  assert.match((await read('eth0: 1\n')).reason, /two header lines expected/)
  assert.equal((await readWith(netdev, fromFile, treeOf(t, {}))).outcome, 'failed')
  await survivesJunk(t, netdev, ['proc/net/dev'], fromFile)
})

/** Sends 3 datagrams of 100 bytes to itself: 128 with the headers, of which this device has none. */
const traffic = `
  const { createSocket } = await import('node:dgram')
  const socket = createSocket('udp4')
  await new Promise(done => socket.bind(0, '127.0.0.1', done))
  const { port } = socket.address()
  for (let i = 0; i < 3; i++) await new Promise(done => socket.send(Buffer.alloc(100), port, '127.0.0.1', done))
  socket.close()`

test('over netlink the kernel tells the same', { skip: withoutNamespaces }, t => {
  const namespace = new NetworkNamespace(t, [
    'link set lo up',
    'link set lo alias loop',
    'link add va type veth peer name vb',
    'addr add 198.51.100.1/24 dev va',
    'addr add 10.9.9.1 peer 10.9.9.2/32 dev vb',
    'addr add 169.254.7.7/16 dev vb',
    'addr add 2001:db8::1/64 dev va nodad',
  ])
  const plain = namespace.read('netdev', {}, traffic).lines
  const lo = new Map(
    plain.flatMap(line => {
      const [, name, value] = /^node_network_(\w+)_total\{device="lo"\} (.*)$/.exec(line) ?? []
      return name === undefined ? [] : [[name, value]]
    }),
  )
  assert.deepEqual([lo.get('receive_packets'), lo.get('receive_bytes')], ['3', '384'])
  assert.deepEqual([lo.get('transmit_packets'), lo.get('receive_nohandler')], ['3', '0'])
  assert.equal(lo.size, 17)
  assert.ok(plain.includes('node_network_transmit_carrier_total{device="vb"} 0'))
  const file = namespace.read('netdev', { netlink: false }).lines
  assert.deepEqual(
    plain.filter(line => !line.includes('nohandler')),
    file,
  )
  const detailed = namespace.read('netdev', { enable_detailed_metrics: true, label_ifalias: true }).lines
  assert.equal(detailed.filter(line => line.includes('device="lo",ifalias="loop"')).length, 24)
  assert.ok(detailed.includes('node_network_collisions_total{device="va",ifalias=""} 0'))
  const addresses = namespace.read('netdev', { address_info: true }).lines
  assert.deepEqual(
    addresses.filter(line => line.startsWith('node_network_address_info')),
    [
      'node_network_address_info{address="10.9.9.1",device="vb",netmask="32",scope="global"} 1',
      'node_network_address_info{address="127.0.0.1",device="lo",netmask="8",scope="link-local"} 1',
      'node_network_address_info{address="169.254.7.7",device="vb",netmask="16",scope="link-local"} 1',
      'node_network_address_info{address="198.51.100.1",device="va",netmask="24",scope="global"} 1',
      'node_network_address_info{address="2001:db8::1",device="va",netmask="64",scope="global"} 1',
      'node_network_address_info{address="::1",device="lo",netmask="128",scope="link-local"} 1',
    ],
  )
})
