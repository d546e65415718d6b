import { spawn } from 'node:child_process'
import { join } from 'node:path'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

export interface Result {
  readonly code: number | null
  readonly out: string
  /** What was said on standard error. */
  readonly talk: string
}

interface How {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Gets all that was said on standard error so far, whenever there is more. */
  readonly onTalk?: (talk: string) => void
}

/** Runs a command of svc from its sources, no terminal in sight, without what the environment sets for svc. */
export function svc(args: readonly string[], { env = {}, cwd, onTalk }: How = {}): Promise<Result> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(SVC|OTEL|NODE)_/.test(name))
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...Object.fromEntries(kept), ...env },
    ...(cwd !== undefined && { cwd }),
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
