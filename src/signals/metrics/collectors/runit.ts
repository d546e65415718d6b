import { closeSync, constants, existsSync, openSync, readdirSync, readSync } from 'node:fs'
import { posix } from 'node:path'
import { path } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { MountTable, RemotePaths } from '../../../kernel/mounts.ts'
import { collector, gauge } from './collector.ts'

const labels = ['service', 'supervisor']
const state = gauge('service_state', 'State of a service: down (0), up (1), or finishing (2).', { labels })
const desired = gauge('service_desired_state', 'State that a service shall have: down (0), or up (1).', {
  labels,
})
const normal = gauge(
  'service_normal_state',
  'Whether a service is started with its supervisor (1), or not (0).',
  {
    labels,
  },
)
const changed = gauge(
  'service_state_last_change_timestamp_seconds',
  'When the state of a service changed, in seconds since the Unix epoch.',
  { labels },
)

/** Bytes of a status file: a TAI64N label, the pid, paused, wanted, terminated, state (runit's sv.c). */
const statusBytes = 20
/** TAI64 counts from 2^62, and is ahead of the Unix epoch by 10 s. */
const taiHigh = 2 ** 30
const taiAhead = 10
const up = 'u'.charCodeAt(0)

/** Services of runit, from the status files of their supervisors. */
export const runit = collector({
  name: 'runit',
  summary: 'States of services under runit',
  enabledByDefault: false,
  metrics: [state, desired, normal, changed],
  options: {
    servicedir: key(path, '/etc/service', 'Directory of the services.'),
  },
  start({ servicedir }, { host, log }) {
    const status = Buffer.alloc(statusBytes)
    const table = new MountTable(host.proc, ['self/mountinfo'], '/')
    return {
      collect(readings) {
        const remote = new RemotePaths(table.readIfPresent())
        for (const service of servicesIn(servicedir, remote)) {
          const directory = posix.join(servicedir, service)
          try {
            if (remote.has(posix.join(directory, 'supervise/status')))
              throw new Error('on a file system that may hang')
            readStatus(posix.join(directory, 'supervise/status'), status)
          } catch (error) {
            log.debug('a service has no status', { service, error })
            continue
          }
          const seconds = (status.readUInt32BE(0) - taiHigh) * 2 ** 32 + status.readUInt32BE(4) - taiAhead
          const isNormallyDown =
            existsSync(posix.join(directory, 'down')) || existsSync(posix.join(directory, 'supervise/down'))
          readings.set(state, status[19]!, service, 'runit')
          readings.set(desired, status[17] === up ? 1 : 0, service, 'runit')
          readings.set(normal, isNormallyDown ? 0 : 1, service, 'runit')
          readings.set(changed, seconds, service, 'runit')
        }
      },
    }
  },
})

function servicesIn(directory: string, remote: RemotePaths): readonly string[] {
  try {
    if (remote.has(directory)) throw new Error(`${directory} is on a file system that may hang`)
    return readdirSync(directory).sort()
  } catch (error) {
    throw new Error('cannot read the services of runit', { cause: error })
  }
}

function readStatus(file: string, into: Buffer): void {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const length = readSync(fd, into, 0, into.length, 0)
    if (length < into.length)
      throw new Error(`cannot read ${file}: it has ${length} bytes, not ${into.length}`)
  } finally {
    closeSync(fd)
  }
}
