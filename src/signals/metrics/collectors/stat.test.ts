import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { stat } from './stat.ts'

test('counts of the whole host are read', async () => {
  const { lines, outcome } = await readWith(stat)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_boot_time_seconds gauge',
    'node_boot_time_seconds 1.7600004e+09',
    '# TYPE node_context_switches_total counter',
    'node_context_switches_total 9.8120044e+07',
    '# TYPE node_forks_total counter',
    'node_forks_total 254113',
    '# TYPE node_intr_total counter',
    'node_intr_total 4.521877e+06',
    '# TYPE node_procs_blocked gauge',
    'node_procs_blocked 1',
    '# TYPE node_procs_running gauge',
    'node_procs_running 3',
  ])
})

test('soft interrupts are shown by kind where they are asked for', async () => {
  const { lines } = await readWith(stat, { softirq: true })
  assert.deepEqual(
    lines.filter(line => line.startsWith('node_softirqs')),
    [
      'node_softirqs_total{vector="block"} 61044',
      'node_softirqs_total{vector="block_iopoll"} 5',
      'node_softirqs_total{vector="hi"} 12',
      'node_softirqs_total{vector="hrtimer"} 3100',
      'node_softirqs_total{vector="net_rx"} 350022',
      'node_softirqs_total{vector="net_tx"} 77',
      'node_softirqs_total{vector="rcu"} 484800',
      'node_softirqs_total{vector="sched"} 700090',
      'node_softirqs_total{vector="tasklet"} 1300',
      'node_softirqs_total{vector="timer"} 800100',
    ],
  )
})

test('junk is no success', t => survivesJunk(t, stat, ['proc/stat'], { softirq: true }))
