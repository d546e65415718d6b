import type { Logger } from '../../../foundation/lib/logger.ts'
import type { SourceSettings, TargetGroup } from './scrape-job.ts'

/** State of a source. */
export interface TargetSourceState {
  /** Whether its targets are current; false if they are the last known ones. */
  readonly connected: boolean
  /** '' for no fault. */
  readonly reason: string
  readonly hint: string
  readonly groups: number
  readonly targets: number
  /** Time of the last successful update, in milliseconds since the Unix epoch; 0 for never. */
  readonly updatedMs: number
}

/** Reports targets from `start` to `stop`. A failing source keeps its last targets. */
export interface TargetSource {
  start(): void
  /** Ends all timers, requests and watches. No further reports. */
  stop(): void
  readonly state: TargetSourceState
}

export interface SourceOptions {
  readonly log: Logger
  /**
   * Called with all groups after each change, at a limited rate so that changes are combined, and the first time once
   * they are known, even if there are none. An unchanged group is the same object as before.
   */
  readonly onGroups: (groups: readonly TargetGroup[]) => void
  /** Clock, in milliseconds since the Unix epoch. */
  readonly now?: () => number
}

export type SettingsOf<Kind extends SourceSettings['kind']> = Extract<SourceSettings, { kind: Kind }>

/** A kind of source. Nothing happens before `start`. */
export interface SourceKind<Kind extends SourceSettings['kind'] = SourceSettings['kind']> {
  readonly kind: Kind
  open(settings: SettingsOf<Kind>, options: SourceOptions): TargetSource
}
