import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../test/helpers/collector.ts'
import { powersupplyclass } from './powersupplyclass.ts'

test('attributes are shown in basic units, and text as labels of what has some', async () => {
  const { lines } = await readWith(powersupplyclass)
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_power_supply_capacity{power_supply="BAT1"} 87',
      'node_power_supply_charge_full{power_supply="BAT1"} 4.4',
      'node_power_supply_current_ampere{power_supply="BAT1"} -1.5',
      'node_power_supply_cyclecount{power_supply="BAT1"} 112',
      'node_power_supply_energy_watthour{power_supply="BAT1"} 31.25',
      'node_power_supply_info{power_supply="AC1",type="Mains"} 1',
      'node_power_supply_info{capacity_level="High",manufacturer="ACME \ufffd \\"X\\"",power_supply="BAT1",' +
        'serial_number="0042",status="Discharging",technology="Li-poly",type="Battery"} 1',
      'node_power_supply_online{power_supply="AC1"} 1',
      'node_power_supply_power_watt{power_supply="BAT1"} 9.75',
      'node_power_supply_present{power_supply="BAT1"} 1',
      'node_power_supply_temp_celsius{power_supply="BAT1"} 30.5',
      'node_power_supply_time_to_empty_seconds{power_supply="BAT1"} 8040',
      'node_power_supply_voltage_volt{power_supply="BAT1"} 12.345678',
    ],
  )
})

test('supplies may be left out', async () => {
  const { lines } = await readWith(powersupplyclass, { ignored_supplies: '^BAT' })
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_power_supply_info{power_supply="AC1",type="Mains"} 1',
      'node_power_supply_online{power_supply="AC1"} 1',
    ],
  )
})

test('a host that knows no supplies has no data, and what is no number fails', async t => {
  assert.equal((await readWith(powersupplyclass, {}, treeOf(t, {}))).outcome, 'no_data')
  await survivesJunk(t, powersupplyclass, ['sys/class/power_supply/BAT1/capacity'])
  await survivesJunk(t, powersupplyclass, ['sys/class/power_supply/BAT1/status'], {}, true)
})
