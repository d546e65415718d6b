// The live page of a running agent: what it looks at, what it shows, and what keeps its past.

import type { UiSource } from '../../api/types.ts'
import type { Config } from '../../config/index.ts'
import type { Registry } from '../../lib/registry.ts'
import type { Parts } from '../parts.ts'
import { type LiveWindow, shareOf } from '../window.ts'
import type { HostVitals } from './host-vitals.ts'
import { MetricRecorder } from './metric-recorder.ts'
import type { Window } from './parts.ts'
import { type ShownText, shownText } from './shown-text.ts'
import { uiSource } from './source.ts'

export interface LivePage {
  readonly source: UiSource
  /** Begins to keep what metrics were. */
  start(): void
  stop(): void
}

/** `vitals` fill the window since the start, and end with the page. */
export function livePage(parts: Parts, window: LiveWindow, vitals: HostVitals, registry: Registry): LivePage {
  const { config } = parts.loaded()
  const recorder = new MetricRecorder({
    read: async maxAgeMs => parts.hostMetrics()?.read(maxAgeMs),
    windowMs: window.windowMs,
    maxBytes: shareOf(config, 'metrics'),
  })
  const shared: Window = {
    get spans() {
      return window.spans
    },
    get edges() {
      return window.edges
    },
    get profiles() {
      return window.profiles
    },
    vitals: window.vitals,
    maxBytes: window.maxBytes,
    windowMs: window.windowMs,
    get bytes() {
      return window.bytes + recorder.bytes + parts.logs.recent.bytes
    },
  }
  return {
    source: uiSource({ ...parts, window: shared, registry, recorder, shown: followed(parts) }),
    start: () => recorder.start(),
    stop: () => {
      vitals.stop()
      recorder.stop()
    },
  }
}

/** By the rules that run, which a reload may replace. */
function followed(parts: Pick<Parts, 'loaded'>): ShownText {
  let of: Config | undefined
  let shown: ShownText = text => text
  return (text, key) => {
    const { config } = parts.loaded()
    if (config !== of) shown = shownText(config)
    of = config
    return shown(text, key)
  }
}
