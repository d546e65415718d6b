import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { hwmon } from './hwmon.ts'

const samples = async (options: Record<string, unknown> = {}, root?: string) =>
  (await readWith(hwmon, options, root)).lines.filter(line => !line.startsWith('#'))

test('each sensor has its metrics, in basic units', async () => {
  assert.deepEqual(await samples({ chip_include: '^platform_it87' }), [
    'node_hwmon_beep_enabled{chip="platform_it87_2624",sensor="beep_enable0"} 1',
    'node_hwmon_chip_names{chip="platform_it87_2624",chip_name="it8728"} 1',
    'node_hwmon_cpu_vid_volts{chip="platform_it87_2624",sensor="cpu0"} 1.25',
    'node_hwmon_fan_alarm{chip="platform_it87_2624",sensor="fan1"} 0',
    'node_hwmon_fan_min_rpm{chip="platform_it87_2624",sensor="fan1"} 10',
    'node_hwmon_fan_rpm{chip="platform_it87_2624",sensor="fan1"} 823',
    'node_hwmon_in_alarm{chip="platform_it87_2624",sensor="in0"} 0',
    'node_hwmon_in_beep_enabled{chip="platform_it87_2624",sensor="in0"} 1',
    'node_hwmon_in_max_volts{chip="platform_it87_2624",sensor="in0"} 3.06',
    'node_hwmon_in_min_volts{chip="platform_it87_2624",sensor="in0"} 0',
    'node_hwmon_in_volts{chip="platform_it87_2624",sensor="in0"} 1.104',
    'node_hwmon_intrusion_alarm{chip="platform_it87_2624",sensor="intrusion0"} 1',
    'node_hwmon_pwm{chip="platform_it87_2624",sensor="pwm1"} 127',
    'node_hwmon_pwm_enable{chip="platform_it87_2624",sensor="pwm1"} 2',
    'node_hwmon_sensor_label{chip="platform_it87_2624",label="Board °",sensor="temp1"} 1',
    'node_hwmon_temp_celsius{chip="platform_it87_2624",sensor="temp1"} 41.5',
    'node_hwmon_temp_crit_alarm_celsius{chip="platform_it87_2624",sensor="temp1"} 0',
    'node_hwmon_temp_type{chip="platform_it87_2624",sensor="temp1"} 4',
    'node_hwmon_update_interval_seconds{chip="platform_it87_2624",sensor="update_interval0"} 1.5',
    'node_hwmon_voltage_regulator_version{chip="platform_it87_2624",sensor="vrm0"} 91',
  ])
})

test('power, energy, current, humidity and frequency have their units', async () => {
  const { lines } = await readWith(hwmon, { chip_include: '^0000:00:01' })
  assert.ok(lines.includes('# TYPE node_hwmon_energy_joule_total counter'))
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_hwmon_chip_names{chip="0000:00:01_0_0000:03:00_0",chip_name="amdgpu"} 1',
      'node_hwmon_curr_amps{chip="0000:00:01_0_0000:03:00_0",sensor="curr1"} 1.5',
      'node_hwmon_energy_joule_total{chip="0000:00:01_0_0000:03:00_0",sensor="energy1"} 5.123456',
      'node_hwmon_fan_target_rpm{chip="0000:00:01_0_0000:03:00_0",sensor="fan1"} 1200',
      'node_hwmon_freq_freq_mhz{chip="0000:00:01_0_0000:03:00_0",sensor="sclk"} 1350',
      'node_hwmon_humidity{chip="0000:00:01_0_0000:03:00_0",sensor="humidity1"} 0.45',
      'node_hwmon_power_accuracy{chip="0000:00:01_0_0000:03:00_0",sensor="power1"} 0.95',
      'node_hwmon_power_average_interval_seconds{chip="0000:00:01_0_0000:03:00_0",sensor="power1"} 1',
      'node_hwmon_power_average_watt{chip="0000:00:01_0_0000:03:00_0",sensor="power1"} 34.25',
      'node_hwmon_sensor_label{chip="0000:00:01_0_0000:03:00_0",label="sclk",sensor="freq1"} 1',
      'node_hwmon_temp_fault{chip="0000:00:01_0_0000:03:00_0",sensor="temp1"} 0',
    ],
  )
})

test('a chip is named by its device, else by its driver, else by its number', async () => {
  assert.deepEqual(await samples({ chip_exclude: '^(0000|platform)' }), [
    'node_hwmon_chip_names{chip="acpitz",chip_name="acpitz"} 1',
    'node_hwmon_chip_names{chip="ieee80211_phy1_wifi_phy4",chip_name="wifi_phy4"} 1',
    'node_hwmon_chip_names{chip="ieee80211_phy1_wifi_phy5",chip_name="wifi_phy5"} 1',
    'node_hwmon_temp_celsius{chip="acpitz",sensor="temp1"} 30',
    'node_hwmon_temp_celsius{chip="hwmon3",sensor="temp1"} 50',
    'node_hwmon_temp_celsius{chip="ieee80211_phy1_wifi_phy4",sensor="temp1"} 61',
    'node_hwmon_temp_celsius{chip="ieee80211_phy1_wifi_phy5",sensor="temp1"} 62',
    'node_hwmon_temp_input_celsius{chip="acpitz",sensor="temp1"} 31',
  ])
})

test('chips of one device are told apart by their driver, or else by their number, also for the filter', async t => {
  const root = copyOfTree(t)
  writeFileSync(join(root, 'sys/class/hwmon/hwmon5/name'), 'wifi_phy4\n')
  assert.deepEqual(await samples({ chip_include: 'phy1_hwmon5$' }, root), [
    'node_hwmon_chip_names{chip="ieee80211_phy1_hwmon5",chip_name="wifi_phy4"} 1',
    'node_hwmon_temp_celsius{chip="ieee80211_phy1_hwmon5",sensor="temp1"} 62',
  ])
  writeFileSync(join(root, 'sys/class/hwmon/hwmon5/name'), '')
  const lines = await samples({ chip_include: 'phy1' }, root)
  assert.ok(lines.includes('node_hwmon_temp_celsius{chip="ieee80211_phy1_wifi_phy4",sensor="temp1"} 61'))
  assert.ok(lines.includes('node_hwmon_temp_celsius{chip="ieee80211_phy1_hwmon5",sensor="temp1"} 62'))
})

test('sensors are chosen by chip and sensor', async () => {
  const one = 'node_hwmon_temp_celsius{chip="hwmon3",sensor="temp1"} 50'
  const names = /chip_names/
  const without = (lines: readonly string[]) => lines.filter(line => !names.test(line))
  assert.deepEqual(without(await samples({ sensor_include: '^hwmon3;temp1$' })), [one])
  assert.ok(!(await samples({ sensor_exclude: '^hwmon3;' })).includes(one))
  assert.deepEqual(await samples({ chip_include: 'hwmon3', chip_exclude: 'hwmon' }), [])
})

test('a device that takes the number of another is noticed at the next reading', async t => {
  const root = copyOfTree(t)
  const link = join(root, 'sys/class/hwmon/hwmon4')
  const { lines } = await readWith(hwmon, { chip_include: 'phy1|hwmon3' }, root, async () => {
    rmSync(link)
    symlinkSync('hwmon3', link)
    const added = join(root, 'sys/class/hwmon/hwmon9')
    mkdirSync(added)
    writeFileSync(join(added, 'name'), 'hwmon3 too\n')
    symlinkSync('nowhere', join(root, 'sys/class/hwmon/hwmon10'))
  })
  assert.ok(lines.includes('node_hwmon_temp_celsius{chip="ieee80211_phy1",sensor="temp1"} 62'))
  assert.ok(lines.includes('node_hwmon_chip_names{chip="hwmon3_too",chip_name="hwmon3_too"} 1'))
})

test('a host without sensors has no data, one with an empty directory none to show', async t => {
  assert.equal((await readWith(hwmon, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = treeOf(t, {})
  mkdirSync(join(root, 'sys/class/hwmon'), { recursive: true })
  const { lines, outcome } = await readWith(hwmon, {}, root)
  assert.deepEqual([lines, outcome], [[], 'success'])
})

test('a sensor that has no number is left out, whatever it has', async t => {
  const files = ['temp1_input', 'temp1_label', 'name', 'beep_enable'].map(
    file => `sys/class/hwmon/hwmon0/${file}`,
  )
  await survivesJunk(t, hwmon, files, {}, true)
  const root = copyOfTree(t)
  writeFileSync(join(root, 'sys/class/hwmon/hwmon0/temp1_label'), 'y'.repeat(5000))
  writeFileSync(join(root, 'sys/class/hwmon/hwmon0/temp1_input'), '12 degrees')
  const lines = await samples({ chip_include: '^platform_it87' }, root)
  assert.ok(lines.every(line => line.length < 300 && !line.startsWith('node_hwmon_temp_celsius')))
})
