import { optionalTextAt } from './_small-file.ts'
import { collector, gauge, NoData } from './collector.ts'

const labels = ['name']

const numbers = [
  [
    'bootstatus',
    gauge('watchdog_bootstatus', 'Why the machine was started last, as bits (WDIOF).', { labels }),
  ],
  ['fw_version', gauge('watchdog_fw_version', "Version of the watchdog's firmware.", { labels })],
  ['nowayout', gauge('watchdog_nowayout', '1 where the watchdog cannot be stopped.', { labels })],
  [
    'timeleft',
    gauge('watchdog_timeleft_seconds', 'Time left before the watchdog resets the machine.', { labels }),
  ],
  [
    'timeout',
    gauge('watchdog_timeout_seconds', 'Time without a sign of life that resets the machine.', { labels }),
  ],
  [
    'pretimeout',
    gauge('watchdog_pretimeout_seconds', 'Time before the reset at which a warning comes.', { labels }),
  ],
  [
    'access_cs0',
    gauge('watchdog_access_cs0', '1 where the machine started from its second flash memory.', { labels }),
  ],
] as const

const info = gauge('watchdog_info', 'What a watchdog is and what it is doing; always 1.', {
  labels: ['identity', 'name', 'options', 'pretimeout_governor', 'state', 'status'],
})

const directory = 'class/watchdog'

/** Watchdogs, from /sys/class/watchdog (Linux, Documentation/ABI/testing/sysfs-class-watchdog). */
export const watchdog = collector({
  name: 'watchdog',
  summary: 'Hardware watchdogs',
  source: '/sys/class/watchdog',
  enabledByDefault: true,
  metrics: [...numbers.map(([, family]) => family), info],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      const names = sys.list(directory)
      if (names.length === 0 && !sys.exists(directory))
        throw new NoData(`${sys.at(directory)} not found: no watchdog`)
      for (const name of names) {
        const text = (file: string) => optionalTextAt(sys, `${directory}/${name}/${file}`) ?? ''
        // Drivers have different files.
        for (const [file, family] of numbers) {
          const value = sys.number(`${directory}/${name}/${file}`)
          if (value !== undefined) readings.set(family, value, name)
        }
        const facts = [text('options'), text('pretimeout_governor'), text('state'), text('status')]
        readings.setAll(info, 1, [text('identity'), name, ...facts])
      }
    },
  }),
})
