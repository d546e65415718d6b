import type { LoadedConfig } from '../../config/index.ts'
import type { ExitCode } from '../../foundation/lib/start-error.ts'
import type { Declaration, Finding, Outcome } from '../../kernel/need.ts'
import type { StatusDocument } from '../../view/api/types.ts'

/** Input of a check. */
export interface Circumstances {
  readonly loaded: LoadedConfig
  /** Of the running agent; undefined if unavailable. */
  readonly status?: StatusDocument | undefined
  /** Time limit of each test that waits for another machine, in milliseconds. */
  readonly timeoutMs: number
}

/**
 * A row of the table whose test depends on the configuration, or waits. It may have several findings, or nothing to
 * test.
 */
export interface Check<F extends string = string> extends Declaration<F> {
  /**
   * `secrets`: its test reads or sends secrets of the configuration. The agent does not report secrets, and a command
   * of root must not send one to an address that another user configured: it is tested by the agent, or with a file.
   * `file`: it judges the file that a start would read, whatever is running.
   */
  readonly reads?: 'secrets' | 'file'
  /** Exit code if only this is missing or limited. */
  readonly exit?: ExitCode
  readonly try: (circumstances: Circumstances) => readonly Finding<F>[] | Promise<readonly Finding<F>[]>
}

/** Restricts the faults of `try` to the declared ones. */
export function check<F extends string>(row: Check<F>): Check<F> {
  return row
}

/** The result of a check. */
export interface Examined extends Outcome {
  readonly name: string
  /** Where it was tested, if an agent was queried: by that agent, or by this process. */
  readonly by?: 'agent' | 'here'
}
