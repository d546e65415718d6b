// Shared input of the live page's documents.

import type { Registry } from '../../foundation/lib/registry.ts'
import type { LiveWindow } from '../agent/window.ts'
import type { Subsystems } from '../subsystems/by-name.ts'
import type { MetricRecorder } from './metric-recorder.ts'
import type { ShownText } from './shown-text.ts'

export interface DocumentContext extends Subsystems {
  /** The agent's own metrics. */
  readonly registry: Registry
  readonly window: LiveWindow
  /** Keeps the history of host metrics. */
  readonly recorder: MetricRecorder
  /** Redacts foreign texts for display. */
  readonly shown: ShownText
}
