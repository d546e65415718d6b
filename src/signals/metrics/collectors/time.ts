import { posix } from 'node:path'
import { TimeZone } from '../../../foundation/lib/time-zone.ts'
import { someTextAt } from './_small-file.ts'
import { collector, gauge, type Tree } from './collector.ts'

const seconds = gauge('time_seconds', 'Time of the host, in seconds since 1970.')
const zoneOffset = gauge('time_zone_offset_seconds', "What the host's time zone is ahead of UTC.", {
  labels: ['time_zone'],
})
const clockLabels = { labels: ['clocksource', 'device'] }
const available = gauge(
  'time_clocksource_available_info',
  'Always 1, for each clock that the kernel may use.',
  clockLabels,
)
const current = gauge('time_clocksource_current_info', 'Always 1, for the clock in use.', clockLabels)

const clocks = 'devices/system/clocksource'
/** Validity of the time zone, in milliseconds. */
const zoneAgeMs = 60_000
/** Time zone directories, below the root directory. */
const zoneDirectories = ['usr/share/zoneinfo', 'usr/share/lib/zoneinfo', 'usr/lib/locale/TZ', 'etc/zoneinfo']

/** Time, time zone and clocks of the host (tzset(3); kernel, ABI/testing/sysfs-devices-system-clocksource). */
export const time = collector({
  name: 'time',
  summary: 'Time, time zone and clocks',
  enabledByDefault: true,
  metrics: [seconds, zoneOffset, available, current],
  start: (_options, { host: { root, sys } }) => {
    let zone = TimeZone.utc
    let readAt = Number.NEGATIVE_INFINITY
    return {
      collect(readings) {
        const now = Date.now()
        if (Math.abs(now - readAt) >= zoneAgeMs) {
          zone = zoneOf(root, process.env.TZ)
          readAt = now
        }
        const { name, offsetSeconds } = zone.at(now / 1000)
        readings.set(seconds, now / 1000)
        readings.set(zoneOffset, offsetSeconds, name)
        let device = 0
        for (const directory of sys.list(clocks)) {
          if (!/^clocksource\d+$/.test(directory)) continue
          const label = String(device++)
          const names = someTextAt(sys, `${clocks}/${directory}/available_clocksource`)
          const used = someTextAt(sys, `${clocks}/${directory}/current_clocksource`)
          if (names === undefined || used === undefined)
            throw new Error(`cannot read ${sys.at(`${clocks}/${directory}`)}: no clocks listed`)
          for (const clock of names.split(' ')) readings.set(available, 1, clock, label)
          readings.set(current, 1, used, label)
        }
      },
    }
  },
})

/** Time zone from TZ, or from /etc/localtime. UTC if unknown, as in the C library. */
export function zoneOf(root: Tree, variable: string | undefined): TimeZone {
  const name = variable?.replace(/^:/, '')
  if (name === '') return TimeZone.utc
  const paths =
    name === undefined
      ? ['etc/localtime']
      : name.startsWith('/')
        ? [name.slice(1)]
        : zoneDirectories.map(directory => `${directory}/${name}`)
  for (const path of paths) {
    try {
      return TimeZone.parse(root.bytes(target(root, path)))
    } catch {
      // The next directory may have it; a misspelled zone is in none.
    }
  }
  return TimeZone.utc
}

/** Target of a link, resolved from this root, not the agent's. */
function target(root: Tree, path: string): string {
  let at = path
  for (let i = 0; i < 8; i++) {
    const link = root.link(at)
    if (link === undefined) return at
    at = posix.join('/', link.startsWith('/') ? '' : posix.dirname(at), link).slice(1)
  }
  return at
}
