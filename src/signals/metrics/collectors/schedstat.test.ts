import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { schedstat } from './schedstat.ts'

test('nanoseconds become seconds', async () => {
  const { lines, outcome } = await readWith(schedstat)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_schedstat_running_seconds_total counter',
    'node_schedstat_running_seconds_total{cpu="0"} 1210.333444555',
    'node_schedstat_running_seconds_total{cpu="1"} 990',
    'node_schedstat_running_seconds_total{cpu="2"} 1.8446744073709553e+10',
    '# TYPE node_schedstat_timeslices_total counter',
    'node_schedstat_timeslices_total{cpu="0"} 88123',
    'node_schedstat_timeslices_total{cpu="1"} 77000',
    'node_schedstat_timeslices_total{cpu="2"} 0',
    '# TYPE node_schedstat_waiting_seconds_total counter',
    'node_schedstat_waiting_seconds_total{cpu="0"} 20.444555666',
    'node_schedstat_waiting_seconds_total{cpu="1"} 1.5',
    'node_schedstat_waiting_seconds_total{cpu="2"} 0',
  ])
})

test('a kernel without statistics of its scheduler has no data', async t => {
  const { outcome, reason } = await readWith(schedstat, {}, treeOf(t, {}))
  assert.equal(outcome, 'no_data')
  assert.match(reason, /CONFIG_SCHEDSTATS/)
})

test('junk is no success', t => survivesJunk(t, schedstat, ['proc/schedstat']))
