import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { kernel_hung } from './kernel_hung.ts'

test('hung tasks are counted', async () => {
  const { lines, outcome } = await readWith(kernel_hung)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, ['# TYPE node_kernel_hung_tasks_total counter', 'node_kernel_hung_tasks_total 2'])
})

test('older kernels have no data', async t => {
  const { outcome, reason } = await readWith(kernel_hung, {}, treeOf(t, {}))
  assert.equal(outcome, 'no_data')
  assert.match(reason, /Linux 6\.13/)
})

test('junk is no success', t => survivesJunk(t, kernel_hung, ['proc/sys/kernel/hung_task_detect_count']))
