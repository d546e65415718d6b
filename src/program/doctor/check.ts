import type { LoadedConfig } from '../../config/index.ts'
import type { ExitCode } from '../../foundation/lib/start-error.ts'
import type { Declaration, Finding, Outcome } from '../../kernel/need.ts'
import type { StatusDocument } from '../../view/api/types.ts'

/** What a check is tried with. */
export interface Circumstances {
  readonly loaded: LoadedConfig
  /** Of the agent that runs; undefined where none tells it. */
  readonly status?: StatusDocument | undefined
  /** Bound on each try that waits for another machine, in milliseconds. */
  readonly timeoutMs: number
}

/** A row of the table whose try depends on the configuration, or waits. It may find several things, or nothing to try. */
export interface Check<F extends string = string> extends Declaration<F> {
  /**
   * `secrets`: its try reads or sends what the configuration keeps secret. The agent tells no secret, and a command of
   * root must not send one wherever a configuration says that somebody else told: it is tried by the agent, or with a
   * file. `file`: it judges the file that a start would read,
   * whatever runs.
   */
  readonly reads?: 'secrets' | 'file'
  /** Exit code where nothing but this is missing or limited. */
  readonly exit?: ExitCode
  readonly try: (circumstances: Circumstances) => readonly Finding<F>[] | Promise<readonly Finding<F>[]>
}

/** Holds the faults that `try` answers to those that are declared. */
export function check<F extends string>(row: Check<F>): Check<F> {
  return row
}

/** What came of a check. */
export interface Examined extends Outcome {
  readonly name: string
  /** Who tried it, where an agent was asked: that agent, or this process. */
  readonly by?: 'agent' | 'here'
}
