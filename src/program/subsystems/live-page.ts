import { RecentLogs } from '../../signals/logs/recent-logs.ts'
import type { UiSource } from '../../view/api/types.ts'
import { HostVitals } from '../agent/host-vitals.ts'
import type { Subsystem } from '../agent/subsystem.ts'
import { LiveWindow, shareOf } from '../agent/window.ts'
import { exporting } from './exporting.ts'
import { memory } from './memory.ts'

/** Memory for the API's log records if there is no page. */
const recentLogBytes = 4 * 1024 * 1024

/** The open page, with its recorder of metrics. */
export interface OpenPage {
  readonly source: UiSource
  start(): void
  stop(): void
}

/** The data of the live page. */
export interface LivePage {
  readonly recent: RecentLogs
  /** Undefined without a page. */
  readonly window: LiveWindow | undefined
  readonly vitals: HostVitals | undefined
  /** Undefined until all its sources are created. */
  page: OpenPage | undefined
}

/** Early in the list: rates need two readings, the first one before the slow parts of the start. */
export const livePage: Subsystem<LivePage> = {
  name: 'live page',
  create: agent => {
    const { config, events } = agent
    const { pipeline } = agent.of(exporting)
    const { governor } = agent.of(memory)
    const isShown = config.self_telemetry.enabled && config.self_telemetry.ui.enabled
    const recent = new RecentLogs({ maxBytes: isShown ? shareOf(config, 'logs') : recentLogBytes })
    governor.register({
      name: 'recent logs',
      kind: 'detail',
      apart: true,
      bytes: () => recent.bytes,
      shed: () => 0,
    })
    // Process events are not logs of processes.
    pipeline.watch('logs', (resource, record) => {
      if (record.eventName === '') recent.add(resource, record)
    })
    if (!isShown) return { recent, window: undefined, vitals: undefined, page: undefined }
    const window = new LiveWindow(config, pipeline, agent.options.log, governor)
    events.edges.listen(window.edge)
    const vitals = new HostVitals({ paths: config.agent.nodeexporter.path, vitals: window.vitals })
    vitals.start()
    return { recent, window, vitals, page: undefined }
  },
  start: ({ page }) => page?.start(),
  stop: ({ page, vitals }) => {
    page?.stop()
    vitals?.stop()
  },
}
