import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { netstat } from './netstat.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))

test('the usual fields of all three files are shown', async () => {
  const { lines, outcome } = await readWith(netstat)
  assert.equal(outcome, 'success')
  assert.deepEqual(samples(lines), [
    'node_netstat_Icmp6_InErrors 0',
    'node_netstat_Icmp6_InMsgs 31',
    'node_netstat_Icmp6_OutMsgs 33',
    'node_netstat_Icmp_InErrors 2',
    'node_netstat_Icmp_InMsgs 130',
    'node_netstat_Icmp_OutMsgs 131',
    'node_netstat_Ip6_InOctets 456789',
    'node_netstat_Ip6_OutOctets 123456',
    'node_netstat_IpExt_InOctets 9.8765432101e+10',
    'node_netstat_IpExt_OutOctets 1.2345678909e+10',
    'node_netstat_Ip_Forwarding 1',
    'node_netstat_TcpExt_ListenDrops 4',
    'node_netstat_TcpExt_ListenOverflows 3',
    'node_netstat_TcpExt_SyncookiesFailed 2',
    'node_netstat_TcpExt_SyncookiesRecv 5',
    'node_netstat_TcpExt_SyncookiesSent 7',
    'node_netstat_TcpExt_TCPOFOQueue 365',
    'node_netstat_TcpExt_TCPRcvQDrop 0',
    'node_netstat_TcpExt_TCPSynRetrans 88',
    'node_netstat_TcpExt_TCPTimeouts 1207',
    'node_netstat_Tcp_ActiveOpens 4100',
    'node_netstat_Tcp_CurrEstab 17',
    'node_netstat_Tcp_InErrs 1',
    'node_netstat_Tcp_InSegs 3.901e+06',
    'node_netstat_Tcp_OutRsts 64',
    'node_netstat_Tcp_OutSegs 3.700111e+06',
    'node_netstat_Tcp_PassiveOpens 811',
    'node_netstat_Tcp_RetransSegs 902',
    'node_netstat_Udp6_InDatagrams 210',
    'node_netstat_Udp6_InErrors 0',
    'node_netstat_Udp6_NoPorts 1',
    'node_netstat_Udp6_OutDatagrams 208',
    'node_netstat_Udp6_RcvbufErrors 0',
    'node_netstat_Udp6_SndbufErrors 0',
    'node_netstat_UdpLite6_InErrors 0',
    'node_netstat_UdpLite_InErrors 0',
    'node_netstat_Udp_InDatagrams 80200',
    'node_netstat_Udp_InErrors 6',
    'node_netstat_Udp_NoPorts 14',
    'node_netstat_Udp_OutDatagrams 80111',
    'node_netstat_Udp_RcvbufErrors 5',
    'node_netstat_Udp_SndbufErrors 0',
  ])
})

test('another pattern shows others', async () => {
  const { lines } = await readWith(netstat, { fields: '^Tcp_M|^Icmp6_Out' })
  assert.deepEqual(lines, [
    '# TYPE node_netstat_Icmp6_OutMsgs untyped',
    'node_netstat_Icmp6_OutMsgs 33',
    '# TYPE node_netstat_Tcp_MaxConn untyped',
    'node_netstat_Tcp_MaxConn -1',
  ])
})

test('a kernel without IPv6 has no snmp6', async t => {
  const root = copyOfTree(t)
  rmSync(`${root}/proc/net/snmp6`)
  const { lines, outcome } = await readWith(netstat, {}, root)
  assert.equal(outcome, 'success')
  assert.equal(samples(lines).length, 30)
})

test('a missing file, and values that are not those of the names, are errors', async t => {
  const check = async (snmp: string, why: RegExp) => {
    const files = { 'proc/net/netstat': 'IpExt: InOctets\nIpExt: 1\n', 'proc/net/snmp': snmp }
    const { outcome, reason } = await readWith(netstat, { fields: '.' }, treeOf(t, files))
    assert.equal(outcome, 'failed')
    assert.match(reason, why)
  }
  await check('Ip: A B\nIp: 1\n', /snmp: line 2 does not have the fields/)
  await check('Ip: A B\nIp: 1 2 3\n', /snmp: line 2 does not have the fields/)
  await check('Ip: A B\nIp: 1 x\n', /snmp: line 2 does not have the fields/)
  await check('Ip: A B\nIp: 1 2\nTcp: A\n', /snmp: line 4 does not have the fields/)
  await check('Ip A\nIp 1\n', /a line has no protocol/)
  assert.equal((await readWith(netstat, {}, treeOf(t, {}))).outcome, 'failed')
})

test('junk is no success', async t => {
  await survivesJunk(t, netstat, ['proc/net/netstat', 'proc/net/snmp', 'proc/net/snmp6'])
})
