import type { Logger } from '../../../foundation/lib/logger.ts'
import type { SourceSettings, TargetGroup } from './scrape-job.ts'

/** What a source knows, and what is in its way. */
export interface TargetSourceState {
  /** What it told is what there is; false: it is the last that was known. */
  readonly connected: boolean
  /** '' where nothing is wrong. */
  readonly reason: string
  readonly hint: string
  readonly groups: number
  readonly targets: number
  /** When this was last known to be so, in milliseconds since the Unix epoch; 0: never. */
  readonly updatedMs: number
}

/** Tells where targets are, from `start` to `stop`. A source that fails keeps what it told last. */
export interface TargetSource {
  start(): void
  /** Ends all timers, requests and watches. Nothing is told any more. */
  stop(): void
  readonly state: TargetSourceState
}

export interface SourceOptions {
  readonly log: Logger
  /**
   * Takes all groups there are, each time that some have changed: seldom enough that many changes are one, and for the
   * first time when they are known, be there none. A group that has not changed is the object that was told before.
   */
  readonly onGroups: (groups: readonly TargetGroup[]) => void
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number
}

export type SettingsOf<Kind extends SourceSettings['kind']> = Extract<SourceSettings, { kind: Kind }>

/** A way to find targets. Nothing happens before `start`. */
export interface SourceKind<Kind extends SourceSettings['kind'] = SourceSettings['kind']> {
  readonly kind: Kind
  open(settings: SettingsOf<Kind>, options: SourceOptions): TargetSource
}
