import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { softnet } from './softnet.ts'

test('columns are hexadecimal, and the last one names the CPU', async () => {
  const { lines, outcome } = await readWith(softnet)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_softnet_backlog_len gauge',
    'node_softnet_backlog_len{cpu="0"} 5',
    'node_softnet_backlog_len{cpu="2"} 0',
    '# TYPE node_softnet_cpu_collision_total counter',
    'node_softnet_cpu_collision_total{cpu="0"} 1',
    'node_softnet_cpu_collision_total{cpu="2"} 0',
    '# TYPE node_softnet_dropped_total counter',
    'node_softnet_dropped_total{cpu="0"} 2',
    'node_softnet_dropped_total{cpu="2"} 0',
    '# TYPE node_softnet_flow_limit_count_total counter',
    'node_softnet_flow_limit_count_total{cpu="0"} 3',
    'node_softnet_flow_limit_count_total{cpu="2"} 0',
    '# TYPE node_softnet_processed_total counter',
    'node_softnet_processed_total{cpu="0"} 123456',
    'node_softnet_processed_total{cpu="2"} 4.294967295e+09',
    '# TYPE node_softnet_received_rps_total counter',
    'node_softnet_received_rps_total{cpu="0"} 255',
    'node_softnet_received_rps_total{cpu="2"} 0',
    '# TYPE node_softnet_times_squeezed_total counter',
    'node_softnet_times_squeezed_total{cpu="0"} 10',
    'node_softnet_times_squeezed_total{cpu="2"} 0',
  ])
})

test('older kernels have fewer columns, and lines stand for CPUs', async t => {
  const row = (last: string) => `0000000a ${'00000000 '.repeat(7)}${last}\n`
  const root = treeOf(t, { 'proc/net/softnet_stat': row('00000001 00000003') + row('00000002') })
  const { lines } = await readWith(softnet, {}, root)
  assert.deepEqual(
    lines.filter(line => /^node_softnet_(processed|cpu|received|backlog)/.test(line)),
    [
      'node_softnet_backlog_len{cpu="0"} 0',
      'node_softnet_backlog_len{cpu="1"} 0',
      'node_softnet_cpu_collision_total{cpu="0"} 1',
      'node_softnet_cpu_collision_total{cpu="1"} 2',
      'node_softnet_processed_total{cpu="0"} 10',
      'node_softnet_processed_total{cpu="1"} 10',
      'node_softnet_received_rps_total{cpu="0"} 3',
      'node_softnet_received_rps_total{cpu="1"} 0',
    ],
  )
})

test('numbers that no counter of 32 bits holds are a fault', async t => {
  const zeros = '00000000 '.repeat(11)
  for (const line of [`fffffffff ${zeros}`, `${zeros} 0 ffffffff`, zeros.slice(0, 72 - 9)]) {
    const { outcome } = await readWith(softnet, {}, treeOf(t, { 'proc/net/softnet_stat': line }))
    assert.equal(outcome, 'failed', line)
  }
})

test('junk is no success', t => survivesJunk(t, softnet, ['proc/net/softnet_stat']))
