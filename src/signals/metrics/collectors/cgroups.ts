import { TableFile } from './_table-file.ts'
import { collector, gauge } from './collector.ts'

const cgroupsOf = gauge('cgroups_cgroups', 'Control groups that use a controller.', {
  labels: ['subsys_name'],
})
const enabled = gauge('cgroups_enabled', 'Whether a controller is switched on.', { labels: ['subsys_name'] })

/** Controllers of control groups, from /proc/cgroups (cgroups(7)). */
export const cgroups = collector({
  name: 'cgroups',
  summary: 'Control groups by controller',
  source: '/proc/cgroups',
  enabledByDefault: false,
  metrics: [cgroupsOf, enabled],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'cgroups')
    return {
      collect(readings) {
        file.read().line()
        if (!file.starts('#subsys_name')) throw file.fault('unknown columns')
        while (file.line()) {
          const name = file.text()
          file.skip() // hierarchy
          readings.set(cgroupsOf, file.count(), name)
          readings.set(enabled, file.count(), name)
        }
      },
    }
  },
})
