import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'
import { arp } from './arp.ts'

test('entries of the file are counted by device', async () => {
  const { lines, outcome } = await readWith(arp, { netlink: false })
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_arp_entries gauge',
    'node_arp_entries{device="br-4f2a91"} 1',
    'node_arp_entries{device="eth0"} 2',
  ])
})

test('devices are chosen', async () => {
  const shown = async (options: Record<string, unknown>) =>
    (await readWith(arp, { netlink: false, ...options })).lines.slice(1)
  assert.deepEqual(await shown({ device_include: '^br-' }), ['node_arp_entries{device="br-4f2a91"} 1'])
  assert.deepEqual(await shown({ device_exclude: '^br-' }), ['node_arp_entries{device="eth0"} 2'])
  await assert.rejects(
    shown({ device_include: 'a', device_exclude: 'b' }),
    /include and exclude are both set/,
  )
})

test('an empty table has no entries, and what is no table is an error', async t => {
  const header = 'IP address       HW type     Flags       HW address            Mask     Device\n'
  const read = (table: string) => readWith(arp, { netlink: false }, treeOf(t, { 'proc/net/arp': table }))
  assert.deepEqual(await read(header), { lines: [], outcome: 'success', reason: '' })
  assert.match((await read(`${header}192.0.2.1 0x1 0x2\n`)).reason, /a line does not have 6 fields/)
  assert.match(
    (await read(`${header}192.0.2.1 0x1 0x2 02:00 * eth0 more\n`)).reason,
    /a line does not have 6 fields/,
  )
  assert.equal((await readWith(arp, { netlink: false }, treeOf(t, {}))).outcome, 'failed')
  await survivesJunk(t, arp, ['proc/net/arp'], { netlink: false })
})

test('over netlink, entries that need no resolution do not count', { skip: withoutNamespaces }, t => {
  const namespace = new NetworkNamespace(t, [
    'link add va type veth peer name vb',
    'link set va up',
    'link set vb up',
    'neigh add 192.0.2.1 lladdr 02:00:5e:00:53:01 dev va nud permanent',
    'neigh add 192.0.2.2 lladdr 02:00:5e:00:53:02 dev va nud reachable',
    'neigh add 192.0.2.3 lladdr 02:00:5e:00:53:03 dev va nud noarp',
    'neigh add 192.0.2.4 lladdr 02:00:5e:00:53:04 dev vb nud stale',
    'neigh add 2001:db8::1 lladdr 02:00:5e:00:53:05 dev vb nud permanent',
  ])
  const want = [
    '# TYPE node_arp_entries gauge',
    'node_arp_entries{device="va"} 2',
    'node_arp_entries{device="vb"} 1',
  ]
  assert.deepEqual(namespace.read('arp').lines, want)
  assert.deepEqual(namespace.read('arp', { netlink: false }).lines, want)
})
