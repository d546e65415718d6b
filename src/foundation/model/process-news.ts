/** A kernel event: a process executes a program, or exits. */
export interface ProcessNews {
  readonly kind: 'exec' | 'exit'
  readonly pid: number
  /** Start time of the process: clock ticks since boot. */
  readonly start: number
  readonly parent: number
  /** Real user id. */
  readonly user: number
  /** The program's path as the caller passed it; '' if unknown. */
  readonly path: string
  /** The kernel's short name of the process. */
  readonly comm: string
  /** Names of its cgroup and the parent's; empty if neither is long enough for a container id. */
  readonly cgroupNames: readonly string[]
}
