import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { ipvs } from './ipvs.ts'

const samples = (lines: readonly string[], of = 'node_ipvs_') => lines.filter(line => line.startsWith(of))

test('totals and real servers are shown', async () => {
  const { lines, outcome } = await readWith(ipvs)
  assert.equal(outcome, 'success')
  assert.deepEqual(samples(lines), [
    'node_ipvs_backend_connections_active{local_address="",local_mark="00000007",local_port="0",proto="FWM",remote_address="10.0.1.3",remote_port="443"} 1',
    'node_ipvs_backend_connections_active{local_address="10.0.0.1",local_mark="",local_port="53",proto="UDP",remote_address="10.0.1.1",remote_port="53"} 0',
    'node_ipvs_backend_connections_active{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.1",remote_port="8080"} 20',
    'node_ipvs_backend_connections_active{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.2",remote_port="8080"} 12',
    'node_ipvs_backend_connections_active{local_address="2001:db8::10",local_mark="",local_port="80",proto="TCP",remote_address="2001:db8::1:2",remote_port="8080"} 8',
    'node_ipvs_backend_connections_inactive{local_address="",local_mark="00000007",local_port="0",proto="FWM",remote_address="10.0.1.3",remote_port="443"} 0',
    'node_ipvs_backend_connections_inactive{local_address="10.0.0.1",local_mark="",local_port="53",proto="UDP",remote_address="10.0.1.1",remote_port="53"} 7',
    'node_ipvs_backend_connections_inactive{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.1",remote_port="8080"} 4',
    'node_ipvs_backend_connections_inactive{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.2",remote_port="8080"} 3',
    'node_ipvs_backend_connections_inactive{local_address="2001:db8::10",local_mark="",local_port="80",proto="TCP",remote_address="2001:db8::1:2",remote_port="8080"} 6',
    'node_ipvs_backend_weight{local_address="",local_mark="00000007",local_port="0",proto="FWM",remote_address="10.0.1.3",remote_port="443"} 5',
    'node_ipvs_backend_weight{local_address="10.0.0.1",local_mark="",local_port="53",proto="UDP",remote_address="10.0.1.1",remote_port="53"} 1',
    'node_ipvs_backend_weight{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.1",remote_port="8080"} 2',
    'node_ipvs_backend_weight{local_address="10.0.0.1",local_mark="",local_port="80",proto="TCP",remote_address="10.0.1.2",remote_port="8080"} 1',
    'node_ipvs_backend_weight{local_address="2001:db8::10",local_mark="",local_port="80",proto="TCP",remote_address="2001:db8::1:2",remote_port="8080"} 1',
    'node_ipvs_connections_total 500',
    'node_ipvs_incoming_bytes_total 1.6e+08',
    'node_ipvs_incoming_packets_total 20000',
    'node_ipvs_outgoing_bytes_total 2e+08',
    'node_ipvs_outgoing_packets_total 15000',
  ])
})

test('real servers that do not differ in the labels are added up', async () => {
  const check = async (backend_labels: string, want: readonly string[]) => {
    const { lines } = await readWith(ipvs, { backend_labels })
    const active = 'node_ipvs_backend_connections_active'
    assert.deepEqual(
      samples(lines, active),
      want.map(rest => `${active}${rest}`),
    )
  }
  await check('', [' 41'])
  await check('remote_port', ['{remote_port="443"} 1', '{remote_port="53"} 0', '{remote_port="8080"} 40'])
  await check('proto,local_address,', [
    '{local_address="",proto="FWM"} 1',
    '{local_address="10.0.0.1",proto="TCP"} 32',
    '{local_address="10.0.0.1",proto="UDP"} 0',
    '{local_address="2001:db8::10",proto="TCP"} 8',
  ])
  await assert.rejects(
    readWith(ipvs, { backend_labels: 'proto,colour' }),
    /backends of ipvs with colour: known labels are/,
  )
})

test('a service of SCTP is no part of the one before it', async t => {
  const head = 'IP Virtual Server version 1.2.1 (size=4096)\n'
  const service = (proto: string) =>
    `${proto}  0A000001:0050 rr\n  -> 0A000101:0050      Masq    1      2         3\n`
  const files = {
    'proc/net/ip_vs_stats': '\n\n 1 2 3 4 5\n',
    'proc/net/ip_vs': head + service('UDP') + service('SCTP'),
  }
  const { lines } = await readWith(ipvs, { backend_labels: 'proto' }, treeOf(t, files))
  assert.deepEqual(samples(lines, 'node_ipvs_backend_weight'), [
    'node_ipvs_backend_weight{proto="SCTP"} 1',
    'node_ipvs_backend_weight{proto="UDP"} 1',
  ])
})

test('without IPVS there is no data; half of it is an error', async t => {
  assert.equal((await readWith(ipvs, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = copyOfTree(t)
  rmSync(`${root}/proc/net/ip_vs`)
  const { lines, outcome } = await readWith(ipvs, {}, root)
  assert.equal(outcome, 'failed')
  assert.equal(samples(lines).length, 5)
  await survivesJunk(t, ipvs, ['proc/net/ip_vs', 'proc/net/ip_vs_stats'])
})
