import { TableFile } from './_table-file.ts'
import { collector, gauge } from './collector.ts'

const blocks = gauge(
  'buddyinfo_blocks',
  'Free blocks of memory of 2 to the power of `size` pages, in a zone of a node.',
  { labels: ['node', 'size', 'zone'] },
)

/** Fragmentation of free memory, from /proc/buddyinfo (proc(5)). */
export const buddyinfo = collector({
  name: 'buddyinfo',
  summary: 'Free blocks of memory by size',
  source: '/proc/buddyinfo',
  enabledByDefault: false,
  metrics: [blocks],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'buddyinfo')
    return {
      collect(readings) {
        file.read()
        let found = false
        while (file.line()) {
          if (file.text() !== 'Node') throw file.fault('a line does not start with a node')
          const node = file.text().replace(/,$/, '')
          file.skip() // "zone"
          const zone = file.text()
          for (let size = 0; !file.done; size++) readings.set(blocks, file.count(), node, String(size), zone)
          found = true
        }
        if (!found) throw file.fault('empty file')
      },
    }
  },
})
