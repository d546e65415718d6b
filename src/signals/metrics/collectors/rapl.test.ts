import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hostTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { rapl } from './rapl.ts'

const zone = (name: string) => `path="${join(hostTree, 'sys/class/powercap', name)}"`

test('each zone shows its energy under its name, counted where the name has no number', async () => {
  const { lines } = await readWith(rapl)
  assert.deepEqual(lines, [
    '# TYPE node_rapl_core_joules_total counter',
    `node_rapl_core_joules_total{index="0",${zone('intel-rapl:0:0')}} 5.000001`,
    '# TYPE node_rapl_dram_joules_total counter',
    `node_rapl_dram_joules_total{index="0",${zone('intel-rapl:0:1')}} 4.2e-05`,
    `node_rapl_dram_joules_total{index="1",${zone('intel-rapl:1:0')}} 7`,
    '# TYPE node_rapl_package_joules_total counter',
    `node_rapl_package_joules_total{index="0",${zone('intel-rapl:0')}} 123.456789`,
    `node_rapl_package_joules_total{index="1",${zone('intel-rapl:1')}} 987.654321`,
    '# TYPE node_rapl_psys_cpu_gpu_joules_total counter',
    `node_rapl_psys_cpu_gpu_joules_total{index="0",${zone('psys')}} 1`,
  ])
})

test('the name may be a label', async () => {
  const { lines } = await readWith(rapl, { enable_zone_label: true })
  assert.equal(lines[0], '# TYPE node_rapl_joules_total counter')
  assert.ok(
    lines.includes(
      `node_rapl_joules_total{index="1",${zone('intel-rapl:1')},rapl_zone="package"} 987.654321`,
    ),
  )
  assert.equal(lines.length, 7)
})

test('a host without zones has no data, a zone without a number fails', async t => {
  assert.equal((await readWith(rapl, {}, treeOf(t, {}))).outcome, 'no_data')
  const gone = await readWith(rapl, {}, treeOf(t, { 'sys/class/powercap/psys/name': 'psys' }))
  assert.equal(gone.outcome, 'failed')
  assert.match(gone.reason, /energy_uj/)
  await survivesJunk(t, rapl, ['sys/class/powercap/psys/energy_uj'])
  const long = await readWith(rapl, {}, treeOf(t, { 'sys/class/powercap/psys/name': '_'.repeat(1e6) }))
  assert.match(long.reason, /name: too long/)
})
