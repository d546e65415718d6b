import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { nfs } from './nfs.ts'

test('calls of the client are shown by version and procedure', async () => {
  const { lines, outcome } = await readWith(nfs)
  assert.equal(outcome, 'success')
  const check = (line: string) => assert.ok(lines.includes(line), line)
  check('node_nfs_packets_total{protocol="tcp"} 10')
  check('node_nfs_packets_total{protocol="udp"} 2')
  check('node_nfs_connections_total 3')
  check('node_nfs_rpcs_total 4200')
  check('node_nfs_rpc_retransmissions_total 7')
  check('node_nfs_rpc_authentication_refreshes_total 4210')
  check('node_nfs_requests_total{method="GetAttr",proto="3"} 300')
  check('node_nfs_requests_total{method="Commit",proto="3"} 9')
  check('node_nfs_requests_total{method="Read",proto="4"} 20')
  check('node_nfs_requests_total{method="Renew",proto="4"} 11')
  // This kernel knows neither version 2 nor newer operations.
  check('node_nfs_requests_total{method="FsStat",proto="2"} 0')
  check('node_nfs_requests_total{method="Clone",proto="4"} 0')
  assert.equal(lines.filter(line => line.startsWith('node_nfs_requests_total')).length, 18 + 22 + 59)
})

test('without a client there is no data', async t => {
  assert.equal((await readWith(nfs, {}, treeOf(t, {}))).outcome, 'no_data')
})

test('lines of another shape are errors', async t => {
  for (const text of [
    'net 1 2 3',
    'net 1 2 3 x',
    'fancy 1',
    'proc3 22 1 2',
    'proc4 2 1',
    'toString 1',
    'rpc',
  ])
    assert.equal((await readWith(nfs, {}, treeOf(t, { 'proc/net/rpc/nfs': text }))).outcome, 'failed', text)
  await survivesJunk(t, nfs, ['proc/net/rpc/nfs'])
})
