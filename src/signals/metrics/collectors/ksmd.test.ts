import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { ksmd } from './ksmd.ts'

test('profit may be negative, and rests are in seconds', async () => {
  const { lines, outcome } = await readWith(ksmd)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_ksmd_full_scans_total counter',
    'node_ksmd_full_scans_total 41',
    '# TYPE node_ksmd_general_profit_bytes gauge',
    'node_ksmd_general_profit_bytes -8192',
    '# TYPE node_ksmd_merge_across_nodes gauge',
    'node_ksmd_merge_across_nodes 1',
    '# TYPE node_ksmd_pages_shared gauge',
    'node_ksmd_pages_shared 100',
    '# TYPE node_ksmd_pages_sharing gauge',
    'node_ksmd_pages_sharing 1700',
    '# TYPE node_ksmd_pages_to_scan gauge',
    'node_ksmd_pages_to_scan 100',
    '# TYPE node_ksmd_pages_unshared gauge',
    'node_ksmd_pages_unshared 55',
    '# TYPE node_ksmd_pages_volatile gauge',
    'node_ksmd_pages_volatile 6',
    '# TYPE node_ksmd_run gauge',
    'node_ksmd_run 1',
    '# TYPE node_ksmd_sleep_seconds gauge',
    'node_ksmd_sleep_seconds 0.02',
  ])
})

test('what the kernel does not say is not shown', async t => {
  const root = treeOf(t, { 'sys/kernel/mm/ksm/run': '2\n' })
  const { lines, outcome } = await readWith(ksmd, {}, root)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, ['# TYPE node_ksmd_run gauge', 'node_ksmd_run 2'])
})

test('a kernel that merges no pages has no data', async t => {
  const { lines, outcome, reason } = await readWith(ksmd, {}, treeOf(t, {}))
  assert.deepEqual([lines, outcome], [[], 'no_data'])
  assert.match(reason, /CONFIG_KSM/)
})

test('junk is no success', t =>
  survivesJunk(t, ksmd, ['sys/kernel/mm/ksm/run', 'sys/kernel/mm/ksm/general_profit']))
