import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
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

test('every attribute of the kernel is shown by its name, in its basic unit', async t => {
  // `attribute`, or `attribute:name` where the name is another, by the unit of the attribute.
  const plain = [
    'authentic calibrate capacity capacity_alert_max capacity_alert_min',
    'cycle_count:cyclecount online present time_to_empty_now:time_to_empty_seconds',
    'time_to_full_now:time_to_full_seconds',
  ]
  const millionths = [
    'charge_control_limit charge_control_limit_max charge_counter charge_empty',
    'charge_empty_design charge_full charge_full_design charge_now:charge_ampere',
    'charge_term_current constant_charge_current constant_charge_current_max',
    'constant_charge_voltage constant_charge_voltage_max current_boot current_max',
    'current_now:current_ampere energy_empty energy_empty_design energy_full',
    'energy_full_design energy_now:energy_watthour input_current_limit power_now:power_watt',
    'precharge_current voltage_boot voltage_max voltage_max_design voltage_min',
    'voltage_min_design voltage_now:voltage_volt voltage_ocv',
  ]
  const tenths = [
    'temp:temp_celsius temp_alert_max:temp_alert_max_celsius',
    'temp_alert_min:temp_alert_min_celsius temp_ambient:temp_ambient_celsius',
    'temp_ambient_max:temp_ambient_max_celsius temp_ambient_min:temp_ambient_min_celsius',
    'temp_max:temp_max_celsius temp_min:temp_min_celsius',
  ]
  const all = [plain, millionths, tenths].flatMap((lines, i) =>
    lines
      .flatMap(line => line.split(' '))
      .map(each => ({
        attribute: each.split(':')[0]!,
        name: each.split(':').at(-1)!,
        unit: [1, 1e6, 10][i]!,
      })),
  )
  const directory = 'sys/class/power_supply/BAT1'
  // Each has a value of its own.
  const root = treeOf(
    t,
    Object.fromEntries(
      all.map(({ attribute, unit }, i) => [`${directory}/${attribute}`, `${(i + 1) * unit}\n`]),
    ),
  )
  const { lines } = await readWith(powersupplyclass, {}, root)
  const found = lines.filter(line => !/^#|_info\{/.test(line)).sort()
  assert.deepEqual(
    found,
    all.map(({ name }, i) => `node_power_supply_${name}{power_supply="BAT1"} ${i + 1}`).sort(),
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
