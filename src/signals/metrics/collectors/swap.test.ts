import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { swap } from './swap.ts'

test('each swap area is shown in bytes, under its name as the kernel writes it', async () => {
  const { lines, outcome } = await readWith(swap)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_swap_priority gauge',
    'node_swap_priority{device="/dev/dm-1",swap_type="partition"} -2',
    'node_swap_priority{device="/var/swap\\\\040file",swap_type="file"} 10',
    '# TYPE node_swap_size_bytes gauge',
    'node_swap_size_bytes{device="/dev/dm-1",swap_type="partition"} 8.589930496e+09',
    'node_swap_size_bytes{device="/var/swap\\\\040file",swap_type="file"} 1.073737728e+09',
    '# TYPE node_swap_used_bytes gauge',
    'node_swap_used_bytes{device="/dev/dm-1",swap_type="partition"} 77824',
    'node_swap_used_bytes{device="/var/swap\\\\040file",swap_type="file"} 0',
  ])
})

test('no swap is a success, no file and junk are not', async t => {
  const read = (files: Record<string, string>) => readWith(swap, {}, treeOf(t, files))
  const header = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n'
  assert.deepEqual(await read({ 'proc/swaps': header }), { lines: [], outcome: 'success', reason: '' })
  assert.match(
    (await read({ 'proc/swaps': `${header}/dev/sda file 5\n` })).reason,
    /swaps: a line does not have/,
  )
  assert.equal((await read({})).outcome, 'failed')
  await survivesJunk(t, swap, ['proc/swaps'])
})
