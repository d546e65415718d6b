import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { pageSizeBytes } from '../../../foundation/lib/page-size.ts'
import { sockstat } from './sockstat.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))

test('sockets are shown by protocol, memory also in bytes', async () => {
  const { lines, outcome } = await readWith(sockstat)
  assert.equal(outcome, 'success')
  assert.deepEqual(samples(lines), [
    'node_sockstat_FRAG6_inuse 1',
    'node_sockstat_FRAG6_memory 4352',
    'node_sockstat_FRAG_inuse 0',
    'node_sockstat_FRAG_memory 0',
    'node_sockstat_RAW6_inuse 1',
    'node_sockstat_RAW_inuse 1',
    'node_sockstat_TCP6_inuse 5',
    'node_sockstat_TCP_alloc 20',
    'node_sockstat_TCP_inuse 12',
    'node_sockstat_TCP_mem 3',
    `node_sockstat_TCP_mem_bytes ${3 * pageSizeBytes()}`,
    'node_sockstat_TCP_orphan 1',
    'node_sockstat_TCP_tw 9',
    'node_sockstat_UDP6_inuse 4',
    'node_sockstat_UDPLITE6_inuse 0',
    'node_sockstat_UDPLITE_inuse 0',
    'node_sockstat_UDP_inuse 6',
    'node_sockstat_UDP_mem 2',
    `node_sockstat_UDP_mem_bytes ${2 * pageSizeBytes()}`,
    'node_sockstat_sockets_used 311',
  ])
})

test('the page size is that of getconf(1)', () => {
  assert.equal(pageSizeBytes(), Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' })))
})

test('files that a kernel lacks, and fields that nobody knows, are left out', async t => {
  assert.deepEqual(await readWith(sockstat, {}, treeOf(t, {})), { lines: [], outcome: 'success', reason: '' })
  const files = { 'proc/net/sockstat6': 'TCP6: glow 5\nsockets: free 3\n' }
  const { lines } = await readWith(sockstat, {}, treeOf(t, files))
  assert.deepEqual(samples(lines), ['node_sockstat_TCP6_inuse 0'])
})

test('lines of another form are errors', async t => {
  for (const text of ['TCP: inuse', 'TCP inuse 1', 'TCP:', 'TCP: inuse x', '\n']) {
    const { outcome, reason } = await readWith(sockstat, {}, treeOf(t, { 'proc/net/sockstat': text }))
    assert.equal(outcome, 'failed', text)
    assert.match(reason, /\/proc\/net\/sockstat: not lines like/)
  }
  await survivesJunk(t, sockstat, ['proc/net/sockstat', 'proc/net/sockstat6'])
})
