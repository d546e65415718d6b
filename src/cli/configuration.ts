import { formatProblems, type LoadedConfig, loadConfig } from '../config/index.ts'
import type { Arguments } from './arguments.ts'
import { say, terminal } from './terminal.ts'

/** Loads the configuration that the flags and the environment name. */
export function configurationOf(args: Arguments, path = args.value('config')): LoadedConfig {
  return loadConfig({
    path,
    explicit: path !== undefined,
    env: process.env,
    flags: { mode: args.value('mode'), log_level: args.value('log-level') },
  })
}

/** Tells on standard error what is wrong, and how much of it. */
export function sayProblems({ problems }: LoadedConfig): void {
  const { interactive, color } = terminal()
  say(formatProblems(problems, { terminal: interactive, color }))
  if (interactive)
    say(`${problems.length} problem${problems.length === 1 ? '' : 's'}. Nothing was started.\n`)
}
