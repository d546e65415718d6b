import { textAt } from './_small-file.ts'
import { collector, gauge, NoData } from './collector.ts'

const info = gauge('nvmesubsystem_info', 'What an NVMe subsystem calls itself. The value is 1.', {
  labels: ['iopolicy', 'model', 'nqn', 'serial', 'subsystem'],
})
const namespaceInfo = gauge('nvmesubsystem_namespace_info', 'A namespace of a subsystem. The value is 1.', {
  labels: ['device', 'subsystem'],
})
const paths = gauge('nvmesubsystem_paths', 'Controllers that lead to a subsystem.', {
  labels: ['subsystem'],
})
const livePaths = gauge('nvmesubsystem_paths_live', 'Controllers that lead to a subsystem and work.', {
  labels: ['subsystem'],
})
const pathState = gauge(
  'nvmesubsystem_path_state',
  'State of a controller that leads to a subsystem: 1 for the one it is in, 0 for others.',
  { labels: ['controller', 'state', 'subsystem', 'transport'] },
)

const shownStates = ['live', 'connecting', 'resetting', 'dead', 'unknown']
/** Known states that are not shown (drivers/nvme/host/core.c). */
const otherStates = new Set(['new', 'deleting', 'deleting (no IO)'])

/** NVMe subsystems and their paths, from /sys/class/nvme-subsystem. */
export const nvmesubsystem = collector({
  name: 'nvmesubsystem',
  summary: 'NVMe subsystems and their paths',
  source: '/sys/class/nvme-subsystem',
  enabledByDefault: false,
  metrics: [info, namespaceInfo, paths, livePaths, pathState],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      const root = 'class/nvme-subsystem'
      if (!sys.exists(root)) throw new NoData('/sys/class/nvme-subsystem not found: no NVMe device')
      for (const subsystem of sys.list(root)) {
        if (!subsystem.startsWith('nvme-subsys')) continue
        const path = `${root}/${subsystem}`
        const attribute = (name: string) => textAt(sys, `${path}/${name}`)
        readings.setAll(info, 1, [
          attribute('iopolicy'),
          attribute('model'),
          attribute('subsysnqn'),
          attribute('serial'),
          subsystem,
        ])
        let all = 0
        let live = 0
        for (const name of sys.list(path)) {
          if (/^nvme\d+n\d+$/.test(name)) readings.set(namespaceInfo, 1, name, subsystem)
          if (!/^nvme\d+$/.test(name)) continue
          const reported = attribute(`${name}/state`)
          const state = shownStates.includes(reported) || otherStates.has(reported) ? reported : 'unknown'
          const transport = attribute(`${name}/transport`)
          all++
          if (state === 'live') live++
          for (const each of shownStates)
            readings.setAll(pathState, each === state ? 1 : 0, [name, each, subsystem, transport])
        }
        readings.set(paths, all, subsystem)
        readings.set(livePaths, live, subsystem)
      }
    },
  }),
})
