import { optionalTextAt } from './_small-file.ts'
import { collector, gauge, type Tree } from './collector.ts'

const temperature = gauge('thermal_zone_temp', 'Temperature of a zone, in degrees Celsius.', {
  labels: ['type', 'zone'],
  unit: 'Cel',
  otel: { name: 'hw.temperature', unit: 'Cel', kind: 'gauge', id: ['type', 'zone'] },
})
const current = gauge('cooling_device_cur_state', 'How much a device cools now; 0 is not at all.', {
  labels: ['name', 'type'],
})
const most = gauge('cooling_device_max_state', 'How much a device can cool.', { labels: ['name', 'type'] })

const directory = 'class/thermal'

/**
 * Temperatures and cooling devices, from /sys/class/thermal (Linux, Documentation/driver-api/thermal/sysfs-api.rst).
 */
export const thermal_zone = collector({
  name: 'thermal_zone',
  alias: 'thermal',
  summary: 'Temperature of zones and state of cooling devices',
  source: '/sys/class/thermal',
  enabledByDefault: true,
  metrics: [temperature, current, most],
  start: (_options, { host: { sys } }) => {
    // Each CPU is a cooling device: types are read once per device.
    let types = new Map<string, string>()
    return {
      collect(readings) {
        const before = types
        types = new Map()
        const typeOf = (name: string) => {
          const type = before.get(name) ?? optionalTextAt(sys, `${directory}/${name}/type`)
          if (type !== undefined) types.set(name, type)
          return type
        }
        const names = sys.list(directory)
        for (const name of names) {
          const zone = numberOf(name, 'thermal_zone')
          if (zone === undefined) continue
          const type = typeOf(name)
          // A sleeping sensor, or one read too early, returns an error instead of a temperature.
          const milli = attribute(sys, name, 'temp')
          if (type !== undefined && milli !== undefined) readings.set(temperature, milli / 1000, type, zone)
        }
        for (const name of names) {
          const device = numberOf(name, 'cooling_device')
          if (device === undefined) continue
          const type = typeOf(name)
          const states = [attribute(sys, name, 'cur_state'), attribute(sys, name, 'max_state')] as const
          if (type === undefined || states[0] === undefined || states[1] === undefined) continue
          readings.set(current, states[0], device, type)
          readings.set(most, states[1], device, type)
        }
      },
    }
  },
})

function attribute(sys: Tree, name: string, file: string): number | undefined {
  return sys.number(`${directory}/${name}/${file}`)
}

/** Rest of a name after the prefix, if it starts with a digit. */
function numberOf(name: string, prefix: string): string | undefined {
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : ''
  return /^\d/.test(rest) ? rest : undefined
}
