import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, gauge } from './collector.ts'

const load1 = gauge('load1', 'Tasks that run or wait to run, averaged over 1 minute.')
const load5 = gauge('load5', 'Tasks that run or wait to run, averaged over 5 minutes.')
const load15 = gauge('load15', 'Tasks that run or wait to run, averaged over 15 minutes.')

/** Load averages, from /proc/loadavg (proc(5)). */
export const loadavg = collector({
  name: 'loadavg',
  summary: 'System load averages',
  source: '/proc/loadavg',
  enabledByDefault: true,
  metrics: [load1, load5, load15],
  start: (_options, { host }) => ({
    collect(readings) {
      const [one, five, fifteen] = parseLoadavg(host.proc.bytes('loadavg'))
      readings.set(load1, one)
      readings.set(load5, five)
      readings.set(load15, fifteen)
    },
  }),
})

/** The three averages. Throws if one is missing. */
export function parseLoadavg(bytes: Buffer): readonly [one: number, five: number, fifteen: number] {
  const scan = new Scanner(bytes)
  scan.line()
  const averages = [scan.number(), scan.number(), scan.number()] as const
  if (averages.some(Number.isNaN)) throw new Error('cannot read /proc/loadavg: expected three numbers')
  return averages
}
