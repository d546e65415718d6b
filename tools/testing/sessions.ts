// Processes of a session (setsid(2)), or with a variable in their environment: a worker and its descendants, even in a
// session of their own.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Members {
  /** Undefined: by variable only. */
  readonly session?: number
  /** Prefix of a variable in their environment: `NAME=VALUE`, or less of it. */
  readonly variable?: string
}

/** Living ones by PID, with their command lines. */
function living({ session, variable }: Members): Map<number, string> {
  const found = new Map<number, string>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const [state, , , id] = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)!.split(' ')
      const ours =
        (session !== undefined && Number(id) === session) ||
        (variable !== undefined && hasVariable(name, variable))
      if (ours && state !== 'Z')
        found.set(Number(name), readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ').trim())
    } catch {
      // It has ended.
    }
  }
  return found
}

function hasVariable(pid: string, variable: string): boolean {
  return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${variable}`)
}

export function endSession(members: Members): void {
  for (const pid of living(members).keys())
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
}

/**
 * Starts a process that kills others, identified by a variable in their environment, when this one ends for any reason.
 * Call the returned function when none of them is left: it ends the watchdog.
 */
export function startWatchdog(variable: string): () => void {
  const watchdog = spawn(process.execPath, [join(import.meta.dirname, 'watchdog.ts'), variable], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a signal from the terminal does not reach it
  })
  watchdog.unref()
  return () => watchdog.stdin.end()
}

/** Waits for a session's end for at most `mostMs`, kills what is left, and returns its command lines. */
export async function sessionEnds(members: Members, mostMs: number): Promise<string[]> {
  const end = Date.now() + mostMs
  let left = living(members)
  while (left.size > 0 && Date.now() < end) {
    await sleep(20)
    left = living(members)
  }
  endSession(members)
  return [...left.values()]
}
