import { posix } from 'node:path'
import { Scanner } from '../../../foundation/lib/scanner.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import type { OtelName } from '../../../foundation/model/collector.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { chipName, cleanName } from './_chip-name.ts'
import { nameFilter } from './_name-filter.ts'
import { collector, counter, type Family, gauge, NoData, type Readings, type Tree } from './collector.ts'
import { families } from './families.ts'

const labels = ['chip', 'sensor']

const chipNames = gauge('hwmon_chip_names', 'The name that a driver gives a chip. The value is 1.', {
  labels: ['chip', 'chip_name'],
})
const sensorLabel = gauge('hwmon_sensor_label', 'What a driver calls a sensor. The value is 1.', {
  labels: ['chip', 'label', 'sensor'],
})
const beepEnabled = gauge('hwmon_beep_enabled', 'Whether a chip may beep at all (1), or not (0).', { labels })
const regulatorVersion = gauge(
  'hwmon_voltage_regulator_version',
  'Version of the standard for voltage regulators that a chip follows.',
  { labels },
)
const updateInterval = gauge('hwmon_update_interval_seconds', 'Time after which a chip measures anew.', {
  labels,
})

/** Kinds of sensors by prefix of their attributes (Documentation/hwmon/sysfs-interface.rst). */
const kinds: Readonly<Record<string, string>> = {
  in: 'Voltage',
  cpu: 'Voltage of a processor core',
  fan: 'Fan',
  pwm: 'Control of a fan',
  temp: 'Temperature',
  curr: 'Current',
  power: 'Power',
  energy: 'Energy',
  humidity: 'Relative humidity',
  intrusion: 'Opening of the chassis',
  freq: 'Frequency',
}
/** Conversion from the driver's unit to the metric's. */
type Scale = (value: number) => number
const same: Scale = value => value
// A product, not a quotient: the last digits differ, and must be equal to those of the replaced exporter.
const fromMilli: Scale = value => value * 0.001
const fromMicro: Scale = value => value / 1e6

/** Attributes of the chip itself. */
const chipAttributes: Readonly<Record<string, readonly [family: Family, scale: Scale]>> = {
  beep_enable: [beepEnabled, value => (value === 1 ? 1 : 0)],
  vrm: [regulatorVersion, same],
  update_interval: [updateInterval, fromMilli],
}

/** Maximum length of a value. */
const mostBytes = 128
/** Validity of the attributes of a chip, in milliseconds: a driver may add attributes later. */
const keptMs = 60_000

/** A shown attribute of a sensor. */
interface Attribute {
  readonly path: string
  readonly family: Family
  readonly scale: Scale
  readonly sensor: string
}

/** Labels of a chip. */
interface Named {
  readonly path: string
  readonly name: string
  readonly driverName: string
}

/** Known data of a directory of /sys/class/hwmon. */
interface Chip {
  readonly name: string
  readonly driverName: string
  readonly sensorLabels: readonly (readonly [label: string, sensor: string])[]
  readonly attributes: readonly Attribute[]
}

/** Sensors of the hardware, from /sys/class/hwmon. */
export const hwmon = collector({
  name: 'hwmon',
  summary: 'Temperatures, voltages, fans and other sensors of the hardware',
  source: '/sys/class/hwmon',
  enabledByDefault: true,
  metrics: [chipNames, sensorLabel, beepEnabled, regulatorVersion, updateInterval],
  dynamic: 'One metric for each kind of sensor and attribute below /sys/class/hwmon.',
  options: {
    chip_include: key(regex, '', 'Regular expression for chips to show; empty for all.'),
    chip_exclude: key(regex, '', 'Regular expression for chips to exclude; empty for none.'),
    sensor_include: key(
      regex,
      '',
      'Regular expression for sensors (as `chip;sensor`) to show; empty for all.',
    ),
    sensor_exclude: key(
      regex,
      '',
      'Regular expression for sensors (as `chip;sensor`) to exclude; empty for none.',
    ),
  },
  start(options, { host: { sys } }) {
    const isShown = nameFilter(options.chip_include, options.chip_exclude)
    const isSensorShown = nameFilter(options.sensor_include, options.sensor_exclude)
    const known = families(familyOf)
    const scan = new Scanner(Buffer.alloc(0))
    let chips: readonly Chip[] = []
    /** Directories and their devices when `chips` was made. */
    let seen: string | undefined
    let until = 0

    return {
      collect(readings) {
        const directories = sys.list('class/hwmon')
        if (directories.length === 0 && !sys.exists('class/hwmon'))
          throw new NoData(`${sys.at('class/hwmon')} not found: the kernel has no sensors`)
        // The link has the device, so a different one with the same number is noticed.
        const now = directories.map(name => `${name} ${sys.link(`class/hwmon/${name}`)}`).join('\n')
        if (now !== seen || performance.now() > until) {
          seen = undefined
          chips = findChips(sys, directories)
          seen = now
          until = performance.now() + keptMs
        }
        for (const chip of chips) if (!show(chip, readings)) seen = undefined
      },
    }

    /** Shows a chip. False if an attribute is gone. */
    function show(chip: Chip, readings: Readings): boolean {
      let whole = true
      if (chip.driverName !== '') readings.set(chipNames, 1, chip.name, chip.driverName)
      for (const [label, sensor] of chip.sensorLabels) readings.set(sensorLabel, 1, chip.name, label, sensor)
      for (const { path, family, scale, sensor } of chip.attributes) {
        let bytes: Buffer
        try {
          bytes = sys.bytes(path)
        } catch (error) {
          // Sensors that are off or busy return errors of all kinds.
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') whole = false
          continue
        }
        const value = scale(numberIn(scan, bytes))
        if (!Number.isNaN(value)) readings.set(family, value, chip.name, sensor)
      }
      return whole
    }

    function findChips(tree: Tree, directories: readonly string[]): readonly Chip[] {
      return namesOf(tree, directories)
        .filter(({ name }) => isShown(name))
        .map(named => findChip(tree, named))
    }

    function findChip(tree: Tree, { path, name, driverName }: Named): Chip {
      const sensorLabels: [string, string][] = []
      const attributes: Attribute[] = []
      for (const [sensor, elements] of sensorsOf(tree, path)) {
        if (!isSensorShown(`${name};${sensor}`)) continue
        const labelPath = elements.get('label')
        const label = labelPath === undefined ? undefined : textOf(tree, labelPath)
        if (label !== undefined) sensorLabels.push([label, sensor])
        const kind = sensor.replace(/\d+$/, '')
        for (const [element, file] of elements) {
          const own = chipAttributes[kind]
          if (own !== undefined) {
            if (element === '') attributes.push({ path: file, family: own[0], scale: own[1], sensor })
            continue
          }
          if (element === 'label' || (kind === 'freq' && element === 'input' && label === undefined)) continue
          const [metric, scale] = metricOf(kind, element, elements.has(''))
          const shownSensor = kind === 'freq' && element === 'input' ? cleanName(label!) : sensor
          attributes.push({ path: file, family: known(metric)!, scale, sensor: shownSensor })
        }
      }
      return { name, driverName, sensorLabels, attributes }
    }
  },
})

/** Unique names of the chips in these directories. */
function namesOf(tree: Tree, directories: readonly string[]): readonly Named[] {
  const found = directories.flatMap(directory => {
    const path = `class/hwmon/${directory}`
    if (!tree.exists(path)) return []
    const driverName = cleanName(textOf(tree, `${path}/name`) ?? '')
    const device = tree.real(`${path}/device`)
    const name = (device === undefined ? '' : chipName(device)) || driverName || numberedName(tree, path)
    return [{ path, directory, name, driverName }]
  })
  // A device may have several chips: then the name of the driver, or of the directory, is added.
  const devices = counts(found.map(({ name }) => name))
  const drivers = counts(found.map(({ name, driverName }) => `${name}_${driverName}`))
  return found.map(({ path, directory, name, driverName }) => {
    if (devices.get(name) === 1) return { path, name, driverName }
    const isAlone = driverName !== '' && drivers.get(`${name}_${driverName}`) === 1
    return { path, name: `${name}_${isAlone ? driverName : cleanName(directory)}`, driverName }
  })
}

function counts(texts: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const text of texts) found.set(text, (found.get(text) ?? 0) + 1)
  return found
}

/** Paths of a chip's attributes by sensor and element. */
function sensorsOf(tree: Tree, path: string): Map<string, Map<string, string>> {
  const sensors = new Map<string, Map<string, string>>()
  // Old drivers have the attributes in the directory of the device.
  for (const directory of [path, `${path}/device`]) {
    for (const file of tree.list(directory)) {
      const [sensor, element] = sensorOf(file) ?? []
      if (sensor === undefined) continue
      const elements = sensors.get(sensor) ?? new Map<string, string>()
      sensors.set(sensor, elements.set(element!, `${directory}/${file}`))
    }
  }
  return sensors
}

/** Name of a chip that has neither a device nor a name: that of its directory. */
function numberedName(tree: Tree, path: string): string {
  const name = cleanName(posix.basename(tree.real(path) ?? ''))
  if (name === '') throw new Error(`cannot name the chip ${tree.at(path)}: it has no device, name or number`)
  return name
}

/** First bytes of an attribute, without line ends; undefined if unreadable. */
function textOf(tree: Tree, path: string): string | undefined {
  if (!tree.exists(path)) return undefined
  try {
    const bytes = tree.bytes(path)
    return utf8Text(bytes, 0, Math.min(bytes.length, mostBytes)).replace(/^\n+|\n+$/g, '')
  } catch {
    return undefined // a missing label is not a failure, and drivers return any error
  }
}

function numberIn(scan: Scanner, bytes: Buffer): number {
  scan.reset(bytes.length > mostBytes ? bytes.subarray(0, mostBytes) : bytes).line()
  const value = scan.number()
  return scan.done ? value : Number.NaN
}

/** `temp1_crit_alarm` → `temp1` and `crit_alarm`; undefined for other files. */
function sensorOf(file: string): readonly [sensor: string, element: string] | undefined {
  const match = /^([^0-9]+)(\d{0,9})(?:_(.+))?$/.exec(file)
  if (match === null) return undefined
  const [, kind = '', number, element = ''] = match
  if (!Object.hasOwn(kinds, kind) && !Object.hasOwn(chipAttributes, kind)) return undefined
  return [`${kind}${Number(number)}`, element]
}

/** Metric and scale of an attribute. `hasPlain`: whether the sensor also has an attribute without an element. */
function metricOf(kind: string, element: string, hasPlain: boolean): readonly [metric: string, scale: Scale] {
  const isValue = element === '' || (element === 'input' && !hasPlain)
  const name = isValue ? `hwmon_${kind}` : `hwmon_${kind}_${cleanName(element)}`
  if (element === 'fault' || element === 'alarm') return [name, same]
  if (element === 'beep') return [`${name}_enabled`, same]
  if (kind === 'in' || kind === 'cpu') return [`${name}_volts`, fromMilli]
  if (kind === 'temp' && element !== 'type') return [`${name}_celsius`, fromMilli]
  if (kind === 'curr') return [`${name}_amps`, fromMilli]
  if (kind === 'energy') return [`${name}_joule_total`, fromMicro]
  if (kind === 'humidity' || (kind === 'power' && element === 'accuracy')) return [name, fromMicro]
  if (kind === 'power' && /^average_interval(_min|_max)?$/.test(element))
    return [`${name}_seconds`, fromMilli]
  if (kind === 'power') return [`${name}_watt`, fromMicro]
  if (kind === 'fan' && /^(input|min|max|target)$/.test(element)) return [`${name}_rpm`, same]
  if (kind === 'freq' && element === 'input') return [`${name}_freq_mhz`, fromMicro]
  return [name, same]
}

/**
 * Sensors in the semantic conventions, by metric name. The conventions have power and energy only for a kind
 * of component, and a chip does not report the component of its sensors.
 */
const conventions: Readonly<Record<string, OtelName>> = {
  hwmon_temp_celsius: sensor('hw.temperature', 'Cel'),
  hwmon_temp_lcrit_celsius: sensor('hw.temperature.limit', 'Cel', 'low.critical'),
  hwmon_temp_min_celsius: sensor('hw.temperature.limit', 'Cel', 'low.degraded'),
  hwmon_temp_max_celsius: sensor('hw.temperature.limit', 'Cel', 'high.degraded'),
  hwmon_temp_crit_celsius: sensor('hw.temperature.limit', 'Cel', 'high.critical'),
  hwmon_in_volts: sensor('hw.voltage', 'V'),
  hwmon_in_lcrit_volts: sensor('hw.voltage.limit', 'V', 'low.critical'),
  hwmon_in_min_volts: sensor('hw.voltage.limit', 'V', 'low.degraded'),
  hwmon_in_max_volts: sensor('hw.voltage.limit', 'V', 'high.degraded'),
  hwmon_in_crit_volts: sensor('hw.voltage.limit', 'V', 'high.critical'),
  hwmon_fan_rpm: sensor('hw.fan.speed', 'rpm'),
  hwmon_fan_min_rpm: sensor('hw.fan.speed.limit', 'rpm', 'low.degraded'),
  hwmon_fan_max_rpm: sensor('hw.fan.speed.limit', 'rpm', 'max'),
  hwmon_temp_fault: fault('temperature'),
  hwmon_fan_fault: fault('fan'),
}

function fault(type: string): OtelName {
  const constant = { 'hw.type': type, 'hw.state': 'failed' }
  return { ...sensor('hw.status', '1'), kind: 'updowncounter', constant }
}

function sensor(name: string, unit: string, limit?: string): OtelName {
  const constant = limit === undefined ? {} : { constant: { 'hw.limit_type': limit } }
  const attributes = { chip: 'hw.parent', sensor: 'hw.name' }
  return { name, unit, kind: 'gauge', id: ['chip', 'sensor'], attributes, ...constant }
}

const units: readonly (readonly [suffix: string, unit: string])[] = [
  ['_rpm', '{revolution}/min'],
  ['_joule_total', 'J'],
  ['_freq_mhz', 'MHz'],
]

function familyOf(name: string): Family {
  const kind = name.split('_')[1]!
  const attribute = name.slice(`hwmon_${kind}_`.length).replaceAll('_', ' ')
  const help = `${kinds[kind]} sensors${attribute === '' ? '' : `: ${attribute}`}.`
  const unit = units.find(([suffix]) => name.endsWith(suffix))?.[1]
  const make = name.endsWith('_joule_total') ? counter : gauge
  const otel = conventions[name]
  return make(name, help, {
    labels,
    ...(unit === undefined ? {} : { unit }),
    ...(otel === undefined ? {} : { otel }),
  })
}
