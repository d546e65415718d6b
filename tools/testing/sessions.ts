// Processes of a session (setsid(2)), or with a variable in their environment: a worker's own and all that it started,
// also where that began a session of its own.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Members {
  /** Undefined: of none. */
  readonly session?: number
  /** How a variable in their environment begins: `NAME=VALUE`, or less of it. */
  readonly variable?: string
}

/** Those that live, by pid, with their command lines. */
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
 * Starts a process that ends others, by a variable in their environment, when this one ends, however it ends. Call what it
 * returns when none of them is left: it ends the watchdog.
 */
export function startWatchdog(variable: string): () => void {
  const watchdog = spawn(process.execPath, [join(import.meta.dirname, 'watchdog.ts'), variable], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // what ends this program from a terminal leaves it
  })
  watchdog.unref()
  return () => watchdog.stdin.end()
}

/** Waits for a session's end for at most `mostMs`, ends what is left then, and returns its command lines. */
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
