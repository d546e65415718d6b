import type { LoadedConfig } from '../../config/index.ts'
import type { Declaration, Finding } from '../../kernel/need.ts'

/** What a check is tried with. */
export interface Circumstances {
  readonly loaded: LoadedConfig
  /** Bound on each try that waits for another machine, in milliseconds. */
  readonly timeoutMs: number
}

/** A row of the table whose try depends on the configuration, or waits. It may find several things, or nothing to try. */
export interface Check<F extends string = string> extends Declaration<F> {
  readonly try: (circumstances: Circumstances) => readonly Finding<F>[] | Promise<readonly Finding<F>[]>
}

/** Holds the faults that `try` answers to those that are declared. */
export function check<F extends string>(row: Check<F>): Check<F> {
  return row
}
