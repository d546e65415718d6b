import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { buddyinfo } from './buddyinfo.ts'

test('free blocks are shown by size', async () => {
  const { lines, outcome } = await readWith(buddyinfo)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_buddyinfo_blocks gauge',
    'node_buddyinfo_blocks{node="0",size="0",zone="DMA"} 1',
    'node_buddyinfo_blocks{node="0",size="0",zone="Normal"} 512',
    'node_buddyinfo_blocks{node="0",size="1",zone="DMA"} 0',
    'node_buddyinfo_blocks{node="0",size="1",zone="Normal"} 128',
    'node_buddyinfo_blocks{node="0",size="2",zone="DMA"} 2',
    'node_buddyinfo_blocks{node="0",size="2",zone="Normal"} 7',
    'node_buddyinfo_blocks{node="1",size="0",zone="Normal"} 9001',
    'node_buddyinfo_blocks{node="1",size="1",zone="Normal"} 4',
    'node_buddyinfo_blocks{node="1",size="2",zone="Normal"} 0',
  ])
})

test('junk is no success', t => survivesJunk(t, buddyinfo, ['proc/buddyinfo']))
