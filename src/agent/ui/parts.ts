// What the documents of the live page are made of.

import type { Registry } from '../../lib/registry.ts'
import type { EdgeWindow } from '../../window/edge-window.ts'
import type { ProfileWindow } from '../../window/profile-window.ts'
import type { SpanWindow } from '../../window/span-window.ts'
import type { Vitals } from '../../window/vitals.ts'
import type { Parts } from '../parts.ts'
import type { MetricRecorder } from './metric-recorder.ts'
import type { ShownText } from './shown-text.ts'

/** What the page looks back at. Each part has its own share of the memory. */
export interface Window {
  readonly spans: SpanWindow
  readonly edges: EdgeWindow
  readonly profiles: ProfileWindow
  readonly vitals: Vitals
  /** Memory that is taken now, and at most; of all parts. */
  readonly bytes: number
  readonly maxBytes: number
  /** How far it looks back at most, in milliseconds. */
  readonly windowMs: number
}

export interface UiParts extends Parts {
  /** The agent's own metrics. */
  readonly registry: Registry
  readonly window: Window
  /** Keeps the past of host metrics. */
  readonly recorder: MetricRecorder
  /** Foreign texts pass it on their way to a person. */
  readonly shown: ShownText
}
