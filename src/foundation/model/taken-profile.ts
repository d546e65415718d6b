import type { Profile } from './profile.ts'

/** Output formats of a taken profile. */
export const profileFormats = ['pprof', 'folded', 'svg', 'json'] as const
export type ProfileFormat = (typeof profileFormats)[number]

/** Kinds of profiles that can be requested. */
export const profileKindNames = ['cpu', 'memory', 'off_cpu'] as const satisfies Profile['kind'][]

/** A requested recording. Without `pid` and `service` it covers the whole host. */
export interface ProfileRequest {
  readonly kind: Profile['kind']
  /** 1 to 60. */
  readonly seconds: number
  readonly pid?: number
  readonly service?: string
  /** For `cpu`: Hz, 1 to 999; default 99. */
  readonly rate?: number
  /** Ends the recording, which then rejects with the signal's reason. */
  readonly signal: AbortSignal
}

/** The processes of one executable and service, with their samples. */
export interface ProfiledGroup {
  readonly service: string
  /** '' if unreadable. */
  readonly executable: string
  readonly pids: readonly number[]
  readonly profile: Profile
}

/** The result of a recording; without groups there were no samples. */
export interface TakenProfile {
  readonly groups: readonly ProfiledGroup[]
  /** CPU time of the whole host during the recording, summed over all CPUs. */
  readonly busyNs: number
  readonly idleNs: number
  /** Samples lost in all processes. */
  readonly lostSamples: number
}

/** Why there is no recording. */
export interface ProfileRefusal {
  /** One sentence. */
  readonly refused: string
  /** What to do about it; '' if unknown. */
  readonly hint: string
  /** `busy`: another one is running; `off`: not possible on this host; `no_target`: no such process or service. */
  readonly cause: 'busy' | 'off' | 'no_target'
  /** With `no_target`: the existing services. */
  readonly services?: readonly string[]
}
