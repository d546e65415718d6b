import type { ProfileRequest } from '../../../foundation/model/taken-profile.ts'

/** Options of `svc profile`. */
export interface ProfileOrder {
  readonly kind: ProfileRequest['kind']
  readonly seconds: number
  /** A PID, or the name of a service; '': all processes. */
  readonly target: string
  /** Hz; 0: the agent's default. */
  readonly rate: number
}
