import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { meminfo_numa } from './meminfo_numa.ts'

test('fields are shown by node', async () => {
  const { lines, outcome } = await readWith(meminfo_numa)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_memory_numa_Active_anon gauge',
    'node_memory_numa_Active_anon{node="0"} 1.7920512e+09',
    '# TYPE node_memory_numa_HugePages_Total gauge',
    'node_memory_numa_HugePages_Total{node="0"} 4',
    'node_memory_numa_HugePages_Total{node="1"} 4',
    '# TYPE node_memory_numa_MemTotal gauge',
    'node_memory_numa_MemTotal{node="0"} 8.347058176e+09',
    'node_memory_numa_MemTotal{node="1"} 8.347058176e+09',
    '# TYPE node_memory_numa_numa_hit_total counter',
    'node_memory_numa_numa_hit_total{node="0"} 9.0441233e+07',
    'node_memory_numa_numa_hit_total{node="1"} 1',
    '# TYPE node_memory_numa_numa_miss_total counter',
    'node_memory_numa_numa_miss_total{node="0"} 0',
    '# TYPE node_memory_numa_other_node_total counter',
    'node_memory_numa_other_node_total{node="0"} 17',
  ])
})

test('a host without nodes has nothing to show, and a node without files is a fault', async t => {
  assert.deepEqual(await readWith(meminfo_numa, {}, treeOf(t, {})), {
    lines: [],
    outcome: 'success',
    reason: '',
  })
  const root = copyOfTree(t)
  rmSync(join(root, 'sys/devices/system/node/node0/numastat'))
  assert.equal((await readWith(meminfo_numa, {}, root)).outcome, 'failed')
})

test('junk is no success', t =>
  survivesJunk(t, meminfo_numa, [
    'sys/devices/system/node/node0/meminfo',
    'sys/devices/system/node/node0/numastat',
  ]))
