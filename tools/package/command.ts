// Runs programs for packaging.

import { execFileSync } from 'node:child_process'

interface How {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The output of a program. Throws its error output if it fails or is missing. */
export function output(command: string, args: readonly string[], { cwd, env }: How = {}): string {
  try {
    return execFileSync(command, args, {
      encoding: 'utf8',
      maxBuffer: 256 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(cwd !== undefined && { cwd }),
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC', ...env },
    })
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    const words = stderr.trim() || message
    throw new Error(`cannot run ${command} ${args.slice(0, 3).join(' ')}: ${words}`, { cause: error })
  }
}

/** Whether a program exists. */
export function commandExists(command: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v "$0"`, command], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
