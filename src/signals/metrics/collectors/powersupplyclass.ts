import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import type { FamilyOptions, OtelName } from '../../../foundation/model/collector.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { collector, type Family, gauge, NoData } from './collector.ts'

/** Maximum length of label values; attributes are shorter. */
const mostText = 128

type Row = readonly [attribute: string, name: string, unit: string]

/** Attributes shown without conversion (Documentation/ABI/testing/sysfs-class-power). */
const plain: readonly Row[] = [
  ['authentic', 'authentic', ''],
  ['calibrate', 'calibrate', ''],
  ['capacity', 'capacity', '%'],
  ['capacity_alert_max', 'capacity_alert_max', '%'],
  ['capacity_alert_min', 'capacity_alert_min', '%'],
  ['cycle_count', 'cyclecount', ''],
  ['online', 'online', ''],
  ['present', 'present', ''],
  ['time_to_empty_now', 'time_to_empty_seconds', 's'],
  ['time_to_full_now', 'time_to_full_seconds', 's'],
]

/** Attributes in millionths: µA, µV, µW, µAh, µWh. */
const millionths: readonly Row[] = [
  ['charge_control_limit', 'charge_control_limit', ''],
  ['charge_control_limit_max', 'charge_control_limit_max', ''],
  ['charge_counter', 'charge_counter', 'A.h'],
  ['charge_empty', 'charge_empty', 'A.h'],
  ['charge_empty_design', 'charge_empty_design', 'A.h'],
  ['charge_full', 'charge_full', 'A.h'],
  ['charge_full_design', 'charge_full_design', 'A.h'],
  ['charge_now', 'charge_ampere', 'A.h'],
  ['charge_term_current', 'charge_term_current', 'A'],
  ['constant_charge_current', 'constant_charge_current', 'A'],
  ['constant_charge_current_max', 'constant_charge_current_max', 'A'],
  ['constant_charge_voltage', 'constant_charge_voltage', 'V'],
  ['constant_charge_voltage_max', 'constant_charge_voltage_max', 'V'],
  ['current_boot', 'current_boot', 'A'],
  ['current_max', 'current_max', 'A'],
  ['current_now', 'current_ampere', 'A'],
  ['energy_empty', 'energy_empty', 'W.h'],
  ['energy_empty_design', 'energy_empty_design', 'W.h'],
  ['energy_full', 'energy_full', 'W.h'],
  ['energy_full_design', 'energy_full_design', 'W.h'],
  ['energy_now', 'energy_watthour', 'W.h'],
  ['input_current_limit', 'input_current_limit', 'A'],
  ['power_now', 'power_watt', 'W'],
  ['precharge_current', 'precharge_current', 'A'],
  ['voltage_boot', 'voltage_boot', 'V'],
  ['voltage_max', 'voltage_max', 'V'],
  ['voltage_max_design', 'voltage_max_design', 'V'],
  ['voltage_min', 'voltage_min', 'V'],
  ['voltage_min_design', 'voltage_min_design', 'V'],
  ['voltage_now', 'voltage_volt', 'V'],
  ['voltage_ocv', 'voltage_ocv', 'V'],
]

/** Attributes in tenths of a degree. */
const tenths: readonly Row[] = [
  ['temp', 'temp_celsius', 'Cel'],
  ['temp_alert_max', 'temp_alert_max_celsius', 'Cel'],
  ['temp_alert_min', 'temp_alert_min_celsius', 'Cel'],
  ['temp_ambient', 'temp_ambient_celsius', 'Cel'],
  ['temp_ambient_max', 'temp_ambient_max_celsius', 'Cel'],
  ['temp_ambient_min', 'temp_ambient_min_celsius', 'Cel'],
  ['temp_max', 'temp_max_celsius', 'Cel'],
  ['temp_min', 'temp_min_celsius', 'Cel'],
]

/** Text attributes, shown as labels, in order, including the label for the name of the supply. */
const texts = [
  'capacity_level',
  'charge_type',
  'health',
  'manufacturer',
  'model_name',
  'power_supply',
  'scope',
  'serial_number',
  'status',
  'technology',
  'type',
  'usb_type',
]

/** Sensor outside the supply. */
const ambient = { 'hw.sensor_location': 'ambient' }

/** Metrics in the semantic conventions, by our names. */
const conventions: Readonly<
  Record<string, Partial<OtelName> & { readonly name: string; readonly unit: string }>
> = {
  capacity: { name: 'hw.battery.charge', unit: '1', scale: 0.01 },
  capacity_alert_min: {
    name: 'hw.battery.charge.limit',
    unit: '1',
    scale: 0.01,
    constant: { 'hw.limit_type': 'degraded' },
  },
  time_to_empty_seconds: {
    name: 'hw.battery.time_left',
    unit: 's',
    constant: { 'hw.battery.state': 'discharging', 'hw.state': 'discharging' },
  },
  time_to_full_seconds: {
    name: 'hw.battery.time_left',
    unit: 's',
    constant: { 'hw.battery.state': 'charging', 'hw.state': 'charging' },
  },
  temp_celsius: { name: 'hw.temperature', unit: 'Cel' },
  temp_alert_max_celsius: temperatureLimit('high.degraded'),
  temp_alert_min_celsius: temperatureLimit('low.degraded'),
  temp_max_celsius: temperatureLimit('high.critical'),
  temp_min_celsius: temperatureLimit('low.critical'),
  temp_ambient_celsius: { name: 'hw.temperature', unit: 'Cel', constant: ambient },
  temp_ambient_max_celsius: temperatureLimit('high.degraded', ambient),
  temp_ambient_min_celsius: temperatureLimit('low.degraded', ambient),
  voltage_volt: { name: 'hw.voltage', unit: 'V' },
}

function temperatureLimit(type: string, constant: Readonly<Record<string, string>> = {}) {
  return { name: 'hw.temperature.limit', unit: 'Cel', constant: { ...constant, 'hw.limit_type': type } }
}

function convention(name: string): FamilyOptions {
  const metric = conventions[name]
  return metric === undefined
    ? {}
    : { otel: { ...metric, kind: 'gauge', attributes: { power_supply: 'hw.id' } } }
}

interface Column {
  readonly family: Family
  readonly divisor: number
}

/** By attribute. */
const columns = new Map<string, Column>([
  ...plain.map(row => column(row, 1)),
  ...millionths.map(row => column(row, 1e6)),
  ...tenths.map(row => column(row, 10)),
])

function column([attribute, name, unit]: Row, divisor: number): [string, Column] {
  const help = `The attribute ${attribute} of a power supply, in basic units.`
  return [
    attribute,
    {
      family: gauge(`power_supply_${name}`, help, { labels: ['power_supply'], unit, ...convention(name) }),
      divisor,
    },
  ]
}

function info(labels: readonly string[]): Family {
  return gauge('power_supply_info', 'What a power supply says of itself in words. The value is 1.', {
    labels,
  })
}

/** Batteries and mains, from /sys/class/power_supply. */
export const powersupplyclass = collector({
  name: 'powersupplyclass',
  summary: 'Batteries and other power supplies',
  source: '/sys/class/power_supply',
  enabledByDefault: true,
  metrics: [...[...columns.values()].map(({ family }) => family), info(texts)],
  options: {
    ignored_supplies: key(regex, '^$', 'Regular expression for supplies to exclude.'),
  },
  flags: { ignored_supplies: 'powersupply.ignored-supplies' },
  start({ ignored_supplies }, { host: { sys } }) {
    const ignored = ignored_supplies === '' ? undefined : linearRegExp(ignored_supplies)
    /** A supply has only the labels that it has values for. */
    const infos = new Map<string, Family>()

    return {
      collect(readings) {
        const supplies = sys.list('class/power_supply')
        if (supplies.length === 0 && !sys.exists('class/power_supply'))
          throw new NoData(`${sys.at('class/power_supply')} not found: the kernel has no power supplies`)
        for (const supply of supplies) {
          if (ignored?.test(supply)) continue
          const path = `class/power_supply/${supply}`
          const found = new Map([['power_supply', supply]])
          for (const attribute of sys.list(path)) {
            const known = columns.get(attribute)
            if (known === undefined && !texts.includes(attribute)) continue
            // Drivers reject reads of values that the hardware does not have now.
            const text = sys.find(`${path}/${attribute}`)
            if (text === undefined) continue
            if (known === undefined) {
              if (text !== '') found.set(attribute, text.slice(0, mostText))
              continue
            }
            if (!/^[-+]?\d{1,20}$/.test(text))
              throw new Error(`cannot read ${sys.at(path)}/${attribute}: no number`)
            readings.set(known.family, Number(text) / known.divisor, supply)
          }
          const labels = texts.filter(label => found.has(label))
          const names = labels.join()
          const family = infos.get(names) ?? info(labels)
          infos.set(names, family)
          readings.setAll(
            family,
            1,
            labels.map(label => found.get(label)!),
          )
        }
      },
    }
  },
})
