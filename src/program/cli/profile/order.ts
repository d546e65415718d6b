import type { ProfileRequest } from '../../../foundation/model/taken-profile.ts'

/** What `svc profile` was asked for. */
export interface ProfileOrder {
  readonly kind: ProfileRequest['kind']
  readonly seconds: number
  /** Number of a process, or name of a service; '': all processes. */
  readonly target: string
  /** Hz; 0: the agent's own choice. */
  readonly rate: number
}
