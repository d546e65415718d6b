import { BusService, readAll, systemBus } from './_system-bus.ts'
import { collector, gauge } from './collector.ts'

const sessions = gauge('logind_sessions', 'Login sessions, by seat; sessions over the network have none.', {
  labels: ['class', 'remote', 'seat', 'type'],
})

// Values of logind 229, as in the replaced exporter: later ones are counted as "other".
const types = ['other', 'unspecified', 'tty', 'x11', 'wayland', 'mir', 'web']
const classes = ['other', 'user', 'greeter', 'lock-screen', 'background']
/** Maximum seats, and maximum sessions. */
const most = 4096

type Labels = readonly [kind: string, remote: string, seat: string, type: string]

/** Login sessions, over the D-Bus interface of logind (org.freedesktop.login1(5)). */
export const logind = collector({
  name: 'logind',
  summary: 'Login sessions',
  source: 'logind over D-Bus',
  enabledByDefault: false,
  metrics: [sessions],
  start(_options, { host }) {
    const bus = systemBus(host)
    let counts: readonly (readonly [Labels, number])[] = []
    return {
      async wait(signal) {
        counts = []
        const service = new BusService(bus, 'org.freedesktop.login1', signal)
        counts = countAll(await listSeats(service), await listSessions(service))
      },
      collect(readings) {
        for (const [labels, count] of counts) readings.setAll(sessions, count, labels)
      },
      close: () => bus.close(),
    }
  },
})

/** Counts of every combination, including those without sessions. Sessions of unknown seats are not counted. */
function countAll(
  seats: readonly string[],
  found: readonly Labels[],
): readonly (readonly [Labels, number])[] {
  const counts = new Map<string, number>()
  for (const labels of found) counts.set(labels.join('\0'), (counts.get(labels.join('\0')) ?? 0) + 1)
  const all = ['true', 'false'].flatMap(remote =>
    types.flatMap(type => classes.flatMap(kind => seats.map((seat): Labels => [kind, remote, seat, type]))),
  )
  return all.map(labels => [labels, counts.get(labels.join('\0')) ?? 0])
}

/** Names of seats, and the empty one. */
async function listSeats(service: BusService): Promise<readonly string[]> {
  const seats = await list(service, 'ListSeats', 'a(so)')
  return [...seats.map(([name]) => name!), '']
}

async function listSessions(service: BusService): Promise<readonly Labels[]> {
  const found: Labels[] = []
  // Name, user's number and name, seat, path.
  const entries = await list(service, 'ListSessions', 'a(susso)')
  await readAll(entries, async ([, , , seat, path]) => {
    const property = (name: string, type: string) =>
      service.property(path!, 'org.freedesktop.login1.Session', name, type)
    const [remote, type, kind] = await Promise.all([
      property('Remote', 'b'),
      property('Type', 's'),
      property('Class', 's'),
    ])
    // It ended in the meantime.
    if (remote === undefined || type === undefined || kind === undefined) return
    found.push([known(kind, classes), String(remote), seat!, known(type, types)])
  })
  return found
}

async function list(
  service: BusService,
  member: string,
  returns: string,
): Promise<readonly (readonly string[])[]> {
  const [entries] = await service.call({
    path: '/org/freedesktop/login1',
    interface: 'org.freedesktop.login1.Manager',
    member,
    returns,
  })
  const found = entries as unknown as readonly (readonly string[])[]
  if (found.length > most)
    throw new Error(`cannot show ${found.length} entries of ${member}: the limit is ${most}`)
  return found
}

function known(value: unknown, values: readonly string[]): string {
  return values.find(one => one === value) ?? 'other'
}
