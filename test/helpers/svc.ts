import { spawn } from 'node:child_process'
import { cleanEnvironment, svcProgram } from './program-under-test.ts'

export interface Result {
  readonly code: number | null
  readonly out: string
  /** What was said on standard error. */
  readonly talk: string
}

interface How {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Whose process it is, and whose group; left out: the test's. */
  readonly uid?: number
  /** Gets all that was said on standard error so far, whenever there is more. */
  readonly onTalk?: (talk: string) => void
}

/** Runs a command of svc, no terminal in sight, without what the environment sets for svc. */
export function svc(args: readonly string[], { env = {}, cwd, uid, onTalk }: How = {}): Promise<Result> {
  const child = spawn(process.execPath, [svcProgram, ...args], {
    env: cleanEnvironment(env),
    ...(cwd !== undefined && { cwd }),
    ...(uid !== undefined && { uid, gid: uid }),
  })
  let out = ''
  let talk = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    talk += chunk
    onTalk?.(talk)
  })
  child.stdin.end()
  return new Promise(resolve => child.on('close', code => resolve({ code, out, talk })))
}
