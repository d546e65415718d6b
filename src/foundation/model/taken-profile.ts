import type { Profile } from './profile.ts'

/** Forms in which a taken profile is handed out. */
export const profileFormats = ['pprof', 'folded', 'svg', 'json'] as const
export type ProfileFormat = (typeof profileFormats)[number]

/** Kinds of profiles that can be asked for. */
export const profileKindNames = ['cpu', 'memory', 'off_cpu'] as const satisfies Profile['kind'][]

/** A recording that somebody wants now. Without `pid` and `service` it is of the whole host. */
export interface ProfileRequest {
  readonly kind: Profile['kind']
  /** 1 to 60. */
  readonly seconds: number
  readonly pid?: number
  readonly service?: string
  /** Of `cpu`: Hz, 1 to 999; left out: 99. */
  readonly rate?: number
  /** Ends the recording, which then rejects with the signal's reason. */
  readonly signal: AbortSignal
}

/** The processes of one executable and service, and what they were seen in. */
export interface ProfiledGroup {
  readonly service: string
  /** '' where it could not be read. */
  readonly executable: string
  readonly pids: readonly number[]
  readonly profile: Profile
}

/** What a recording saw; without groups that was nothing. */
export interface TakenProfile {
  readonly groups: readonly ProfiledGroup[]
  /** CPU time of the whole host meanwhile, all CPUs together. */
  readonly busyNs: number
  readonly idleNs: number
  /** Samples that are missing, of all processes. */
  readonly lostSamples: number
}

/** Why there is no recording. */
export interface ProfileRefusal {
  /** One sentence. */
  readonly refused: string
  /** What to do about it; '' where nothing is known. */
  readonly hint: string
  /** `busy`: another one is under way; `off`: it cannot be taken here; `no_target`: no such process or service. */
  readonly cause: 'busy' | 'off' | 'no_target'
  /** With `no_target`: services that there are. */
  readonly services?: readonly string[]
}
