import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, gauge } from './collector.ts'

const labels = ['device', 'swap_type']
const size = gauge('swap_size_bytes', 'Size of a swap area.', { labels })
const used = gauge('swap_used_bytes', 'Bytes of a swap area that are in use.', {
  labels,
  otel: {
    name: 'system.paging.usage',
    unit: 'By',
    kind: 'updowncounter',
    attributes: { device: 'system.device' },
    constant: { 'system.paging.state': 'used' },
  },
})
const priority = gauge('swap_priority', 'Priority of a swap area: areas of higher ones are filled first.', {
  labels,
})

/** Swap areas, from /proc/swaps (proc(5)), which counts in KiB. */
export const swap = collector({
  name: 'swap',
  summary: 'Swap areas',
  source: '/proc/swaps',
  enabledByDefault: false,
  metrics: [size, used, priority],
  start: (_options, { host }) => ({
    collect(readings) {
      const scan = new Scanner(host.proc.bytes('swaps'))
      if (!scan.line() || !scan.starts('Filename')) throw new Error('cannot read /proc/swaps: no header line')
      while (scan.line()) {
        if (scan.done) continue
        const device = scan.text()
        const type = scan.text()
        const sizeKib = scan.number()
        const usedKib = scan.number()
        const rank = scan.number()
        if (Number.isNaN(sizeKib + usedKib + rank))
          throw new Error('cannot read /proc/swaps: a line does not have three numbers')
        readings.set(size, sizeKib * 1024, device, type)
        readings.set(used, usedKib * 1024, device, type)
        readings.set(priority, rank, device, type)
      }
    },
  }),
})
