/** What the kernel tells of a process when it begins to run a program, and when it ends. */
export interface ProcessNews {
  readonly kind: 'exec' | 'exit'
  readonly pid: number
  /** When the process started: clock ticks since boot. */
  readonly start: number
  readonly parent: number
  /** The real user. */
  readonly user: number
  /** The program, as the caller named it; '' where it is not known. */
  readonly path: string
  /** The kernel's short name of the process. */
  readonly comm: string
  /** Names of its control group and of the one above; empty where none has room for a container's id. */
  readonly cgroupNames: readonly string[]
}
