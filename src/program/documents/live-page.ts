// The live page of a running agent: its sources, its documents, and its history.

import type { Config } from '../../config/index.ts'
import type { Registry } from '../../foundation/lib/registry.ts'
import { type LiveWindow, shareOf } from '../agent/window.ts'
import type { Subsystems } from '../subsystems/by-name.ts'
import type { OpenPage } from '../subsystems/live-page.ts'
import { MetricRecorder } from './metric-recorder.ts'
import { type ShownText, shownText } from './shown-text.ts'
import { uiSource } from './source.ts'

export function openLivePage(parts: Subsystems, window: LiveWindow, registry: Registry): OpenPage {
  const { config } = parts.loaded()
  const recorder = new MetricRecorder({
    read: async maxAgeMs => parts.hostMetrics()?.read(maxAgeMs),
    windowMs: window.windowMs,
    maxBytes: shareOf(config, 'metrics'),
  })
  window.otherBytes = () => recorder.bytes + parts.logs.recent.bytes
  return {
    source: uiSource({ ...parts, window, registry, recorder, shown: followed(parts) }),
    start: () => recorder.start(),
    stop: () => recorder.stop(),
  }
}

/** Applies the current rules, which a reload may replace. */
function followed(parts: Pick<Subsystems, 'loaded'>): ShownText {
  let of: Config | undefined
  let shown: ShownText = text => text
  return (text, key) => {
    const { config } = parts.loaded()
    if (config !== of) shown = shownText(config)
    of = config
    return shown(text, key)
  }
}
