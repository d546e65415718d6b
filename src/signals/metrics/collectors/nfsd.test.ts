import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { nfsd } from './nfsd.ts'

test('requests to the server are shown by version and procedure', async () => {
  const { lines, outcome } = await readWith(nfsd)
  assert.equal(outcome, 'success')
  const requests = lines.filter(line => line.startsWith('node_nfsd_requests_total'))
  const others = lines.filter(line => !line.startsWith('#') && !requests.includes(line))
  assert.deepEqual(others, [
    'node_nfsd_connections_total 21',
    'node_nfsd_disk_bytes_read_total 1.048576e+06',
    'node_nfsd_disk_bytes_written_total 4096',
    'node_nfsd_file_handles_stale_total 2',
    'node_nfsd_packets_total{proto="tcp"} 9360',
    'node_nfsd_packets_total{proto="udp"} 40',
    'node_nfsd_read_ahead_cache_not_found_total 5',
    'node_nfsd_read_ahead_cache_size_blocks 32',
    'node_nfsd_reply_cache_hits_total 4',
    'node_nfsd_reply_cache_misses_total 260',
    'node_nfsd_reply_cache_nocache_total 9100',
    'node_nfsd_rpc_errors_total{error="auth"} 3',
    'node_nfsd_rpc_errors_total{error="cInt"} 2',
    'node_nfsd_rpc_errors_total{error="fmt"} 1',
    'node_nfsd_server_rpcs_total 9364',
    'node_nfsd_server_threads 16',
  ])
  const check = (method: string, proto: string, value: number) =>
    assert.ok(
      requests.includes(`node_nfsd_requests_total{method="${method}",proto="${proto}"} ${value}`),
      method,
    )
  check('GetAttr', '3', 1200)
  check('Commit', '3', 44)
  check('Access', '4', 71)
  check('PutFH', '4', 1900)
  check('Read', '4', 820)
  check('Write', '4', 95)
  check('RelLockOwner', '4', 0)
  check('WdelegGetattr', '4', 3)
  assert.equal(requests.length, 17 + 21 + 35 + 1)
})

test('without a server there is no data', async t => {
  assert.equal((await readWith(nfsd, {}, treeOf(t, {}))).outcome, 'no_data')
})

test('lines of another shape are errors', async t => {
  for (const text of ['rc 1 2', 'th 8', 'proc4ops 3 1 2 3', 'hello 1', 'io 1 -'])
    assert.equal((await readWith(nfsd, {}, treeOf(t, { 'proc/net/rpc/nfsd': text }))).outcome, 'failed', text)
  await survivesJunk(t, nfsd, ['proc/net/rpc/nfsd'])
})
