import { formatProblems, type LoadedConfig, loadConfig } from '../../config/index.ts'
import { ExitCode } from '../../foundation/lib/start-error.ts'
import type { Arguments } from './arguments.ts'
import { say, terminal } from './terminal.ts'

/** Loads the configuration named by flags and environment; with `checkFiles` also checks the files it names. */
export function configurationOf(
  args: Arguments,
  path = args.value('config'),
  checkFiles = false,
): LoadedConfig {
  return loadConfig({
    checkFiles,
    path,
    explicit: path !== undefined,
    env: process.env,
    flags: { mode: args.value('mode'), log_level: args.value('log-level') },
  })
}

/** The exit code for an invalid configuration. */
export function exitOf({ denied }: LoadedConfig): ExitCode {
  return denied ? ExitCode.permission : ExitCode.usage
}

/** Prints the problems, and their number, to standard error. */
export function sayProblems({ problems }: LoadedConfig): void {
  const { interactive, color } = terminal()
  say(formatProblems(problems, { terminal: interactive, color }))
  if (interactive)
    say(`${problems.length} problem${problems.length === 1 ? '' : 's'}. The agent was not started.\n`)
}
