import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { netclass } from './netclass.ts'

const options = { ignored_devices: '^bond' }

function series(lines: readonly string[]): readonly string[] {
  return lines.filter(line => !line.startsWith('#')).map(line => line.replace('node_network_', ''))
}

test('files of devices are shown, those that are there', async () => {
  const { lines, outcome } = await readWith(netclass, options)
  assert.equal(outcome, 'success')
  assert.deepEqual(series(lines), [
    'address_assign_type{device="eth0"} 0',
    'address_assign_type{device="wg0"} 0',
    'carrier{device="eth0"} 1',
    'carrier_changes_total{device="eth0"} 5',
    'carrier_changes_total{device="wg0"} 0',
    'carrier_down_changes_total{device="eth0"} 2',
    'carrier_up_changes_total{device="eth0"} 3',
    'device_id{device="eth0"} 31',
    'device_id{device="wg0"} 0',
    'dormant{device="eth0"} 0',
    'flags{device="eth0"} 4099',
    'flags{device="wg0"} 144',
    'iface_id{device="eth0"} 2',
    'iface_id{device="wg0"} 5',
    'iface_link{device="eth0"} 2',
    'iface_link{device="wg0"} 5',
    'iface_link_mode{device="eth0"} 0',
    'iface_link_mode{device="wg0"} 0',
    'info{address="",adminstate="down",broadcast="",device="wg0",duplex="",ifalias="",operstate="down"} 1',
    'info{address="02:00:5e:00:53:10",adminstate="up",broadcast="ff:ff:ff:ff:ff:ff",device="eth0",duplex="full",ifalias="uplink \\"A\\"",operstate="up"} 1',
    'mtu_bytes{device="eth0"} 9000',
    'mtu_bytes{device="wg0"} 1420',
    'name_assign_type{device="eth0"} 4',
    'net_dev_group{device="eth0"} 7',
    'net_dev_group{device="wg0"} 0',
    'protocol_type{device="eth0"} 1',
    'protocol_type{device="wg0"} 65534',
    'speed_bytes{device="eth0"} 3.125e+09',
    'speed_bytes{device="wg0"} -125000',
    'transmit_queue_length{device="eth0"} 1000',
    'transmit_queue_length{device="wg0"} 1000',
    'up{device="eth0"} 1',
    'up{device="wg0"} 0',
  ])
})

test('devices and speeds that nobody knows are left out on demand', async () => {
  const { lines } = await readWith(netclass, { ...options, ignore_invalid_speed: true })
  assert.ok(!lines.includes('node_network_speed_bytes{device="wg0"} -125000'))
  assert.ok(lines.includes('node_network_speed_bytes{device="eth0"} 3.125e+09'))
  const { lines: one } = await readWith(netclass, { ignored_devices: '^(bond|w)' })
  assert.ok(one.length > 0 && !one.some(line => line.includes('wg0')))
})

test('what changes is read again, and a device that takes the place of another is a new one', async t => {
  const root = copyOfTree(t)
  const paths = { procfs: join(root, 'proc'), sysfs: join(root, 'sys'), rootfs: root, udev: root }
  const host = new HostFiles(paths)
  t.after(() => host.close())
  const reader = netclass.start(
    { ...options, ignore_invalid_speed: false, netlink: false, rtnl_with_stats: false },
    { host, log: silentLogger },
  )
  const read = async () => {
    await reader.wait!(new AbortController().signal)
    const seen = new Map<string, number>()
    reader.collect({
      set: (family, value, device) => void seen.set(`${family.name} ${device}`, value),
      setAll: (family, value, labels) => void seen.set(`${family.name} ${labels[3]} ${labels[6]}`, value),
      setDistribution: () => undefined,
    })
    return seen
  }
  const write = (file: string, content: string) =>
    writeFileSync(join(root, 'sys/class/net/wg0', file), content)
  assert.equal((await read()).get('network_name_assign_type wg0'), undefined)
  assert.equal((await read()).get('network_carrier wg0'), undefined)
  // It comes up: what it refused to tell before is asked for at once.
  write('flags', '0x91\n')
  write('operstate', 'unknown\n')
  write('carrier', '1\n')
  const up = await read()
  assert.deepEqual([up.get('network_carrier wg0'), up.get('network_flags wg0')], [1, 0x91])
  assert.equal(up.get('network_info wg0 unknown'), 1)
  // Another device of that name.
  write('ifindex', '9\n')
  write('name_assign_type', '3\n')
  const other = await read()
  assert.deepEqual([other.get('network_name_assign_type wg0'), other.get('network_iface_id wg0')], [3, 9])
  // A driver that was not ready is asked again after a while, though nothing else changed.
  write('duplex', 'full\n')
  write('dormant', '0\n')
  for (let i = 0; i < 17; i++) await read()
  assert.equal((await read()).get('network_dormant wg0'), 0)
  rmSync(join(root, 'sys/class/net/wg0'), { recursive: true })
  assert.ok(![...(await read()).keys()].some(key => key.includes('wg0')))
})

test('hundreds of devices are read in pieces, and those that go meanwhile are not shown', async t => {
  const files = Array.from({ length: 300 }, (_, i) => [`sys/class/net/v${i}/ifindex`, `${i}\n`])
  const root = treeOf(t, Object.fromEntries(files))
  const host = new HostFiles({ procfs: '', sysfs: join(root, 'sys'), rootfs: '', udev: '' })
  t.after(() => host.close())
  const reader = netclass.start(
    { ...options, ignore_invalid_speed: false, netlink: false, rtnl_with_stats: false },
    { host, log: silentLogger },
  )
  const isDone = reader.wait!(new AbortController().signal)
  // Names are in the order of their bytes: this is the last one.
  rmSync(join(root, 'sys/class/net/v99'), { recursive: true })
  await isDone
  const seen = new Set<string>()
  reader.collect({
    set: (_family, _value, device) => void seen.add(device!),
    setAll: (_family, _value, labels) => void seen.add(labels[3]!),
    setDistribution: () => undefined,
  })
  assert.equal(seen.size, 299)
  assert.ok(!seen.has('v99'))
  await assert.rejects(async () => reader.wait!(AbortSignal.abort()), { name: 'AbortError' })
})

test('a sysfs without network devices is no data, and what is no number is an error', async t => {
  assert.equal((await readWith(netclass, {}, treeOf(t, {}))).outcome, 'no_data')
  const { outcome, reason } = await readWith(netclass, {}, treeOf(t, { 'sys/class/net/a/mtu': 'many\n' }))
  assert.equal(outcome, 'failed')
  assert.match(reason, /^cannot read .*class\/net\/a\/mtu: no number$/)
  const files = ['flags', 'speed'].map(file => `sys/class/net/eth0/${file}`)
  await survivesJunk(t, netclass, files, options)
  const long = treeOf(t, { 'sys/class/net/a/ifalias': 'x'.repeat(258) })
  assert.match((await readWith(netclass, {}, long)).reason, /ifalias: longer than 256 bytes/)
})

test('over netlink there are further names, counters on demand, and the rest is the same', {
  skip: withoutNamespaces,
}, t => {
  const namespace = new NetworkNamespace(t, [
    'link add va address 02:00:5e:00:53:01 type veth peer name vb',
    'link set va up',
    'link set vb up',
    'link set va alias first',
    'link property add dev va altname a-name-that-is-longer',
    'link add d0 address 02:00:5e:00:53:02 mtu 1280 txqueuelen 7 type veth peer name d1',
    'link set d0 group 9',
  ])
  const files = series(namespace.read('netclass').lines)
  assert.ok(files.includes('speed_bytes{device="va"} 1.25e+09'))
  assert.ok(files.includes('net_dev_group{device="d0"} 9'))
  // A device that is down refuses to tell its carrier in a file.
  assert.ok(!files.some(line => line.startsWith('carrier{device="d0"}')))
  const asked = series(namespace.read('netclass', { netlink: true }).lines)
  const own = (line: string) => /^(carrier|dormant|flags|info|altnames_info|speed_bytes)\{/.test(line)
  assert.deepEqual(
    asked.filter(line => !own(line)),
    files.filter(line => !own(line)),
  )
  assert.ok(asked.includes('altnames_info{altname="a-name-that-is-longer",device="va"} 1'))
  assert.ok(asked.includes('carrier{device="d0"} 0'))
  assert.ok(
    asked.includes(
      'info{address="02:00:5e:00:53:01",broadcast="ff:ff:ff:ff:ff:ff",device="va",duplex="Full",ifalias="first",operstate="up"} 1',
    ),
  )
  assert.ok(asked.includes('speed_bytes{device="va"} 1.25e+09'))
  const counted = series(namespace.read('netclass', { netlink: true, rtnl_with_stats: true }).lines)
  assert.ok(counted.includes('receive_crc_errors_total{device="d0"} 0'))
  assert.equal(counted.length - asked.length, 24 * 5)
})
