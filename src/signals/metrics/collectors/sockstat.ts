import { pageSizeBytes } from '../../../foundation/lib/page-size.ts'
import { Scanner } from '../../../foundation/lib/scanner.ts'
import { bytesIfPresent } from './_missing-file.ts'
import { collector, type Family, gauge, type Readings } from './collector.ts'
import { families, metricName } from './families.ts'

const used = gauge('sockstat_sockets_used', 'Sockets of all kinds that are in use.')

/** Descriptions of fields. Other fields are not shown. */
const meanings: Readonly<Record<string, string>> = {
  inuse: 'Sockets in use',
  orphan: 'Sockets that belong to no process any more',
  tw: 'Sockets that wait after their end (TIME_WAIT)',
  alloc: 'Sockets that have memory, in use or not',
  mem: 'Pages of memory in buffers',
  memory: 'Bytes of memory in buffers',
  mem_bytes: 'Bytes of memory in buffers, by whole pages',
}

function make(name: string): Family | undefined {
  const cut = name.indexOf('_')
  const meaning = meanings[name.slice(cut + 1)]
  if (meaning === undefined) return undefined
  const unit = name.endsWith('_memory') ? { unit: 'By' } : {}
  return gauge(`sockstat_${metricName(name)}`, `${meaning}, of ${name.slice(0, cut)}.`, unit)
}

const usual = [
  'TCP_inuse TCP_orphan TCP_tw TCP_alloc TCP_mem TCP_mem_bytes UDP_inuse UDP_mem UDP_mem_bytes UDPLITE_inuse',
  'RAW_inuse FRAG_inuse FRAG_memory TCP6_inuse UDP6_inuse UDPLITE6_inuse RAW6_inuse FRAG6_inuse FRAG6_memory',
].flatMap(names => names.split(' ').map(name => make(name)!))

/** Sockets by protocol, from /proc/net/{sockstat,sockstat6} (proc(5)). */
export const sockstat = collector({
  name: 'sockstat',
  summary: 'Sockets by protocol',
  source: '/proc/net/sockstat, sockstat6',
  enabledByDefault: true,
  metrics: [used, ...usual],
  start: (_options, { host }) => {
    const pageBytes = pageSizeBytes()
    const familyOf = families(make)
    const scan = new Scanner(Buffer.alloc(0))

    // A kernel without IPv4 or IPv6 lacks the file.
    const read = (path: string, readings: Readings) => {
      const bytes = bytesIfPresent(host.proc, path)
      if (bytes === undefined) return
      const broken = () => new Error(`cannot read /proc/${path}: not lines like "TCP: inuse 1"`)
      scan.reset(bytes)
      let lines = 0
      for (; scan.line(); lines++) {
        const head = scan.text()
        if (!head.endsWith(':') || scan.done) throw broken()
        const protocol = head.slice(0, -1)
        const isTotal = protocol === 'sockets'
        const show = (name: string, value: number) => {
          const family = isTotal ? (name === 'used' ? used : undefined) : familyOf(`${protocol}_${name}`)
          if (family !== undefined) readings.set(family, value)
        }
        let hasUse = false
        while (!scan.done) {
          const name = scan.text()
          const value = scan.number()
          if (Number.isNaN(value)) throw broken()
          show(name, value)
          hasUse ||= name === 'inuse'
          if (name === 'mem') show('mem_bytes', value * pageBytes)
        }
        if (!hasUse) show('inuse', 0)
      }
      if (lines === 0) throw broken()
    }

    return {
      collect(readings) {
        read('net/sockstat', readings)
        read('net/sockstat6', readings)
      },
    }
  },
})
