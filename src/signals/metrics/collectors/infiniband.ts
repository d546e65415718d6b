import { decimal } from '../../../foundation/lib/scanner.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { deviceFilter } from './_device-filter.ts'
import { errorCounters, oldPortCounters, portCounters, portLabels } from './_infiniband-counters.ts'
import { optionalTextAt } from './_small-file.ts'
import { collector, gauge, NoData, type Readings, type Tree } from './collector.ts'

const info = gauge('infiniband_info', 'Maker and firmware of an InfiniBand device; always 1.', {
  labels: ['board_id', 'device', 'firmware_version', 'hca_type'],
})
const state = gauge(
  'infiniband_state_id',
  'State of a port: 1 down, 2 initialising, 3 armed, 4 active, 5 active and deferred.',
  portLabels,
)
const physicalState = gauge(
  'infiniband_physical_state_id',
  "State of a port's link: 1 asleep, 2 polling, 3 disabled, 4 training, 5 up, 6 recovering, 7 in a test.",
  portLabels,
)
const rate = gauge('infiniband_rate_bytes_per_second', 'Highest rate of a port.', {
  ...portLabels,
  unit: 'By/s',
  otel: { name: 'hw.network.bandwidth.limit', unit: 'By/s', kind: 'updowncounter', id: portLabels.labels },
})
const lifespan = gauge(
  'infiniband_lifespan_seconds',
  'Age that counters of the device may have when they are read.',
  portLabels,
)

const directory = 'class/infiniband'

/** Counter directories of a port; they depend on the driver and the kernel. */
const counterDirectories = [
  ['counters', portCounters],
  ['counters_ext', oldPortCounters],
  ['hw_counters', errorCounters],
] as const

/** InfiniBand and RoCE ports, from /sys/class/infiniband (Linux, Documentation/ABI/stable/sysfs-class-infiniband). */
export const infiniband = collector({
  name: 'infiniband',
  summary: 'Traffic and errors of InfiniBand ports',
  source: '/sys/class/infiniband',
  enabledByDefault: true,
  metrics: [
    info,
    state,
    physicalState,
    rate,
    lifespan,
    ...counterDirectories.flatMap(([, counters]) => [...counters.values()].map(({ family }) => family)),
  ],
  options: {
    device_include: key(regex, '', 'Regular expression for devices to show; empty for none.'),
    device_exclude: key(regex, '', 'Regular expression for devices to exclude; empty for none.'),
  },
  start: ({ device_include, device_exclude }, { host: { sys } }) => {
    const shows = deviceFilter({ include: device_include, exclude: device_exclude }, 'infiniband')
    return {
      collect(readings) {
        const devices = sys.list(directory)
        if (devices.length === 0 && !sys.exists(directory))
          throw new NoData(`${sys.at(directory)} not found: no InfiniBand device`)
        for (const device of devices) if (shows(device)) readDevice(sys, device, readings)
      },
    }
  },
})

function readDevice(sys: Tree, device: string, readings: Readings): void {
  const path = `${directory}/${device}`
  // Not all drivers have the others.
  const firmware = required(sys, `${path}/fw_ver`)
  const [board = '', type = ''] = [
    optionalTextAt(sys, `${path}/board_id`),
    optionalTextAt(sys, `${path}/hca_type`),
  ]
  readings.setAll(info, 1, [board, device, firmware, type])
  for (const port of sys.list(`${path}/ports`)) readPort(sys, device, port, readings)
}

function readPort(sys: Tree, device: string, port: string, readings: Readings): void {
  const path = `${directory}/${device}/ports/${port}`
  readings.set(state, stateId(sys, `${path}/state`), device, port)
  readings.set(physicalState, stateId(sys, `${path}/phys_state`), device, port)
  readings.set(rate, rateBytes(sys, `${path}/rate`), device, port)

  for (const [name, counters] of counterDirectories) {
    for (const file of sys.list(`${path}/${name}`)) {
      const counter = counters.get(file)
      if (counter === undefined) continue
      const value = count(sys, `${path}/${name}/${file}`)
      if (value !== undefined) readings.set(counter.family, value * counter.factor, device, port)
    }
  }
  const milliseconds = count(sys, `${path}/hw_counters/lifespan`)
  if (milliseconds !== undefined) readings.set(lifespan, Math.floor(milliseconds / 1000), device, port)
}

/** A counter; undefined if the port does not have it, which some drivers report as text. */
function count(sys: Tree, path: string): number | undefined {
  const text = sys.find(path)
  if (text === undefined || text.includes('N/A (no PMA)')) return undefined
  const value = decimal(text)
  if (Number.isNaN(value)) throw new Error(`cannot read ${sys.at(path)}: no number`)
  return value
}

/** `4: ACTIVE` */
function stateId(sys: Tree, path: string): number {
  const id = /^(\d+)\s*:[^:]*$/.exec(required(sys, path))?.[1]
  if (id === undefined) throw new Error(`cannot read ${sys.at(path)}: not a number and a name`)
  return Number(id)
}

/** `100 Gb/sec (4X EDR)` in bytes a second. */
function rateBytes(sys: Tree, path: string): number {
  const gigabits = decimal(/^(\S+) /.exec(required(sys, path))?.[1] ?? '')
  if (Number.isNaN(gigabits)) throw new Error(`cannot read ${sys.at(path)}: not a rate such as "100 Gb/sec"`)
  return Math.floor(gigabits * 125_000_000)
}

function required(sys: Tree, path: string): string {
  const text = optionalTextAt(sys, path)
  if (text === undefined) throw new NoData(`${sys.at(path)} not found, or no permission to read it`)
  return text
}
