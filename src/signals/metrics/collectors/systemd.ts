import { DBusClient } from '../../../foundation/lib/dbus-client.ts'
import { anchoredRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { BusService, readAll, systemBus } from './_system-bus.ts'
import { collector, counter, type Family, gauge } from './collector.ts'

const unitState = gauge(
  'systemd_unit_state',
  'Whether a unit is in this state; the type is that of services and mounts.',
  {
    labels: ['name', 'state', 'type'],
  },
)
const unitStart = gauge(
  'systemd_unit_start_time_seconds',
  'When a unit became active, in seconds since 1970; 0 where it is not.',
  { labels: ['name'] },
)
const unitTasks = gauge('systemd_unit_tasks_current', 'Tasks that a service has.', { labels: ['name'] })
const unitTasksMax = gauge(
  'systemd_unit_tasks_max',
  'Tasks that a service may have; absent without a limit.',
  {
    labels: ['name'],
  },
)
const systemRunning = gauge(
  'systemd_system_running',
  'Whether the system is up and no unit of it has failed.',
)
const unitsByState = gauge('systemd_units', 'Units that systemd has loaded, by state.', { labels: ['state'] })
const restarts = counter('systemd_service_restart_total', 'Automatic restarts of a service.', {
  labels: ['name'],
})
const timerTrigger = gauge(
  'systemd_timer_last_trigger_seconds',
  'When a timer last elapsed, in seconds since 1970; 0 for never.',
  { labels: ['name'] },
)
const accepted = counter(
  'systemd_socket_accepted_connections_total',
  'Connections that a socket unit accepted.',
  {
    labels: ['name'],
  },
)
const connections = gauge('systemd_socket_current_connections', 'Connections that a socket unit holds.', {
  labels: ['name'],
})
// A counter, but the replaced exporter declares a gauge.
const refused = gauge('systemd_socket_refused_connections_total', 'Connections that a socket unit refused.', {
  labels: ['name'],
})
const versionInfo = gauge('systemd_version', 'Version of systemd, as a number and as it says it.', {
  labels: ['version'],
})
const virtualization = gauge(
  'systemd_virtualization_info',
  'Which virtualization systemd runs in, as a label.',
  {
    labels: ['virtualization_type'],
  },
)

const states = ['active', 'activating', 'deactivating', 'inactive', 'failed']
const mostUnits = 20_000
/** First version with its own state and the times of timers. */
const stateSince = 212
/** Task count without accounting. */
const unlimited = 2n ** 64n - 1n

type Row = readonly [family: Family, value: number, ...labels: string[]]

interface Unit {
  readonly name: string
  /** Suffix of its name, after the last dot. */
  readonly kind: string
  readonly state: string
  readonly path: string
}

/** systemd units, over its D-Bus interface (org.freedesktop.systemd1(5)). */
export const systemd = collector({
  name: 'systemd',
  summary: 'Units of systemd',
  source: 'systemd over D-Bus',
  enabledByDefault: false,
  metrics: [
    ...[unitState, unitStart, unitTasks, unitTasksMax, systemRunning, unitsByState, restarts, timerTrigger],
    ...[accepted, connections, refused, versionInfo, virtualization],
  ],
  options: {
    unit_include: key(regex, '.+', 'Regular expression, anchored, for units to show.'),
    unit_exclude: key(
      regex,
      '.+\\.(automount|device|mount|scope|slice)',
      'Regular expression, anchored, for units to exclude.',
    ),
    private: key(boolean, false, 'Connects to systemd over its private socket instead of D-Bus.'),
    enable_task_metrics: key(boolean, false, 'Shows tasks of services.'),
    enable_restarts_metrics: key(boolean, false, 'Shows restarts of services.'),
    enable_start_time_metrics: key(boolean, false, 'Shows start times of units.'),
  },
  start(options, { host }) {
    const include = anchoredRegExp(options.unit_include)
    const exclude = anchoredRegExp(options.unit_exclude)
    const bus = systemBus(host)
    const direct = new DBusClient({ isBus: false, sockets: () => [host.root.at('run/systemd/private')] })
    let result: { readonly rows: readonly Row[]; readonly failure?: unknown } = { rows: [] }

    /** Connects to systemd; root can do so without a bus too. */
    const connected = async (signal: AbortSignal): Promise<DBusClient> => {
      if (options.private) return direct
      try {
        await bus.connect(signal)
        return bus
      } catch (error) {
        if (process.geteuid!() !== 0 || signal.aborted) throw error
        await direct.connect(signal).catch(() => {
          throw error
        })
        return direct
      }
    }

    const read = async (found: Row[], signal: AbortSignal) => {
      const service = new BusService(await connected(signal), 'org.freedesktop.systemd1', signal)
      const manager = (name: string) =>
        service.property('/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager', name, 's')
      const [version, virtual, state] = await Promise.all(
        ['Version', 'Virtualization', 'SystemState'].map(manager),
      )
      const number = Number(/[0-9]{3,}(\.[0-9]+)?/.exec(String(version ?? ''))?.[0] ?? 0)
      found.push([versionInfo, number, number === 0 ? '' : String(version)])
      found.push([virtualization, 1, virtual === undefined ? 'unknown' : String(virtual) || 'none'])
      const all = await listUnits(service)
      const counts = new Map(states.map(name => [name, 0]))
      for (const unit of all) counts.set(unit.state, (counts.get(unit.state) ?? 0) + 1)
      for (const [name, count] of counts) found.push([unitsByState, count, name])
      const shown = all.filter(({ name, isLoaded }) => isLoaded && include.test(name) && !exclude.test(name))
      await readAll(shown, unit => readUnit(service, unit, number, found))
      if (number < stateSince) return
      if (state === undefined) throw new Error('cannot read the state of systemd: not reported')
      found.push([systemRunning, state === 'running' ? 1 : 0])
    }

    const readUnit = async (service: BusService, unit: Unit, version: number, found: Row[]) => {
      const { name, kind, path } = unit
      const property = (owner: string, of: string, type: string) =>
        service.property(path, `org.freedesktop.systemd1.${owner}`, of, type)
      const show = async (family: Family, owner: string, of: string, type: string, scale = 1) => {
        const value = await property(owner, of, type)
        if (value !== undefined && value !== unlimited) found.push([family, Number(value) / scale, name])
      }
      const showType = async () => {
        const owner = kind === 'service' ? 'Service' : kind === 'mount' ? 'Mount' : ''
        const type = owner === '' ? '' : String((await property(owner, 'Type', 's')) ?? '')
        for (const state of states) found.push([unitState, state === unit.state ? 1 : 0, name, state, type])
      }
      const asked = [showType()]
      if (kind === 'service' && options.enable_restarts_metrics)
        asked.push(show(restarts, 'Service', 'NRestarts', 'u'))
      if (kind === 'service' && options.enable_task_metrics) {
        asked.push(show(unitTasks, 'Service', 'TasksCurrent', 't'))
        asked.push(show(unitTasksMax, 'Service', 'TasksMax', 't'))
      }
      if (kind === 'timer' && version >= stateSince)
        asked.push(show(timerTrigger, 'Timer', 'LastTriggerUSec', 't', 1e6))
      if (kind === 'socket') {
        asked.push(show(accepted, 'Socket', 'NAccepted', 'u'))
        asked.push(show(connections, 'Socket', 'NConnections', 'u'))
        asked.push(show(refused, 'Socket', 'NRefused', 'u'))
      }
      if (options.enable_start_time_metrics) {
        if (unit.state !== 'active') found.push([unitStart, 0, name])
        else asked.push(show(unitStart, 'Unit', 'ActiveEnterTimestamp', 't', 1e6))
      }
      await Promise.all(asked)
    }

    return {
      async wait(signal) {
        const rows: Row[] = []
        try {
          await read(rows, signal)
          result = { rows }
        } catch (failure) {
          result = { rows, failure }
        }
        // A direct connection to systemd receives all its signals about units.
        direct.close()
      },
      collect(readings) {
        for (const [family, value, ...labels] of result.rows) readings.setAll(family, value, labels)
        if (result.failure !== undefined) throw result.failure
      },
      close() {
        bus.close()
        direct.close()
      },
    }
  },
})

async function listUnits(service: BusService): Promise<readonly (Unit & { readonly isLoaded: boolean })[]> {
  const [list] = await service.call({
    path: '/org/freedesktop/systemd1',
    interface: 'org.freedesktop.systemd1.Manager',
    member: 'ListUnits',
    returns: 'a(ssssssouso)',
  })
  const units = list as unknown as readonly (readonly string[])[]
  if (units.length > mostUnits)
    throw new Error(`cannot show ${units.length} units of systemd: the limit is ${mostUnits}`)
  // Name, description, load state, active state, sub state, followed unit, path, job.
  return units.map(([name, , load, state, , , path]) => ({
    name: name!,
    kind: name!.slice(name!.lastIndexOf('.') + 1),
    state: state!,
    path: path!,
    isLoaded: load === 'loaded',
  }))
}
