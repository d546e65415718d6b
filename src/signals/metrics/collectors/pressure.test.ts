import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { pressure } from './pressure.ts'

test('microseconds become seconds', async () => {
  const { lines, outcome } = await readWith(pressure)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_pressure_cpu_waiting_seconds_total counter',
    'node_pressure_cpu_waiting_seconds_total 48.2119',
    '# TYPE node_pressure_io_stalled_seconds_total counter',
    'node_pressure_io_stalled_seconds_total 6.500001',
    '# TYPE node_pressure_io_waiting_seconds_total counter',
    'node_pressure_io_waiting_seconds_total 7.003',
    '# TYPE node_pressure_irq_stalled_seconds_total counter',
    'node_pressure_irq_stalled_seconds_total 1.844674407370955e+13',
    '# TYPE node_pressure_memory_stalled_seconds_total counter',
    'node_pressure_memory_stalled_seconds_total 0.000125',
    '# TYPE node_pressure_memory_waiting_seconds_total counter',
    'node_pressure_memory_waiting_seconds_total 0.00025',
  ])
})

test('older kernels have no pressure of interrupts, or none at all', async t => {
  const some = 'some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n'
  const { lines, outcome } = await readWith(pressure, {}, treeOf(t, { 'proc/pressure/cpu': some }))
  assert.equal(outcome, 'success')
  assert.deepEqual(lines.slice(1), ['node_pressure_cpu_waiting_seconds_total 1e-06'])
  assert.equal((await readWith(pressure, {}, treeOf(t, {}))).outcome, 'no_data')
})

test('junk is no success', t =>
  survivesJunk(t, pressure, ['proc/pressure/cpu', 'proc/pressure/io', 'proc/pressure/irq']))
