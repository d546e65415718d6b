import { TableFile } from './_table-file.ts'
import { collector, gauge } from './collector.ts'

const allocated = gauge('filefd_allocated', 'Files that are open on the host.')
const maximum = gauge('filefd_maximum', 'Most files that may be open on the host.')

/** Open files, from /proc/sys/fs/file-nr (proc_sys_fs(5)). */
export const filefd = collector({
  name: 'filefd',
  summary: 'Open files of the host',
  source: '/proc/sys/fs/file-nr',
  enabledByDefault: true,
  metrics: [allocated, maximum],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'sys/fs/file-nr')
    return {
      collect(readings) {
        file.read().line()
        const open = file.count()
        file.skip() // always 0
        readings.set(allocated, open)
        readings.set(maximum, file.count())
      },
    }
  },
})
