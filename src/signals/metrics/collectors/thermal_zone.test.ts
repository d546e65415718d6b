import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { thermal_zone } from './thermal_zone.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))
const directory = 'sys/class/thermal'

test('temperatures and states of cooling devices are shown', async () => {
  const { lines, outcome } = await readWith(thermal_zone)
  assert.equal(outcome, 'success')
  // Zone 2 is a radio that is off and has no temperature.
  assert.deepEqual(samples(lines), [
    'node_cooling_device_cur_state{name="0",type="Processor"} 0',
    'node_cooling_device_cur_state{name="1",type="intel_powerclamp"} -1',
    'node_cooling_device_max_state{name="0",type="Processor"} 10',
    'node_cooling_device_max_state{name="1",type="intel_powerclamp"} 50',
    'node_thermal_zone_temp{type="acpitz",zone="0"} 42.5',
    'node_thermal_zone_temp{type="x86_pkg_temp",zone="1"} -1',
  ])
})

test('a machine without zones shows nothing', async t => {
  assert.deepEqual(await readWith(thermal_zone, {}, treeOf(t, {})), {
    lines: [],
    outcome: 'success',
    reason: '',
  })
})

test('a device that lacks a state is left out', async t => {
  const root = copyOfTree(t)
  renameSync(`${root}/${directory}/cooling_device0/max_state`, `${root}/${directory}/cooling_device0/other`)
  const { lines, outcome } = await readWith(thermal_zone, {}, root)
  assert.equal(outcome, 'success')
  assert.equal(samples(lines).length, 4)
  writeFileSync(`${root}/${directory}/cooling_device1/cur_state`, 'high\n')
  assert.equal((await readWith(thermal_zone, {}, root)).outcome, 'failed')
})

test('junk is no success', async t => {
  const files = ['thermal_zone0/temp', 'cooling_device0/cur_state', 'cooling_device0/max_state']
  await survivesJunk(
    t,
    thermal_zone,
    files.map(file => `${directory}/${file}`),
  )
  await survivesJunk(t, thermal_zone, [`${directory}/thermal_zone0/type`], {}, true)
})
