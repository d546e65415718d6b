import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ResourceGroup } from '../resource-group.ts'
import type { Attack } from './attacks.ts'

/** What attackers may take of the host that the tests run on. */
export const memoryBytes = 8 * 2 ** 30

/** What an attack is told. */
export interface Target {
  readonly api: number
  readonly exporter: number
  /** A folder whose `*.log` are followed. */
  readonly logs: string
  /** A file that only root may read. */
  readonly secret: string
  /** /dev/fuse as hosts have it, open to everybody; '' where there is none. */
  readonly fuse: string
}

/** An attack under way, in a control group of its own, so that nothing of it is left. */
export class RunningAttack {
  readonly name: string
  readonly ended: Promise<void>
  #output = ''
  readonly #group: ResourceGroup
  readonly #folder: string
  readonly #child: ChildProcess

  constructor({ name, user }: Attack, seconds: number, target: Target, users: ResourceGroup) {
    this.name = name
    this.#group = new ResourceGroup({ memoryBytes, within: users })
    this.#folder = mkdtempSync(join(tmpdir(), `svc-attack-${name}-`))
    chownSync(this.#folder, user, user)
    const program = join(import.meta.dirname, 'programs', `${name}.py`)
    const order = JSON.stringify({ ...target, seconds, folder: this.#folder })
    const drop = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs']
    const [command, ...args] = [...this.#group.wrapper, ...drop, '/usr/bin/python3', '-B', program, order]
    const child = spawn(command!, args, {
      cwd: this.#folder,
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('latin1').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-2000)
      })
    this.#child = child
    this.ended = once(child, 'exit').then(() => undefined)
  }

  /** Ends what is left of it. Returns what it said, which is a fault of the attack's. */
  async stop(): Promise<string> {
    await this.#group.end()
    await this.ended
    this.#child.stdout!.destroy()
    this.#child.stderr!.destroy()
    rmSync(this.#folder, { recursive: true, force: true })
    return this.#output
  }
}

/** A folder of logs that anybody may write to, as /tmp is. */
export function openFolder(parent: string): string {
  const logs = join(parent, 'logs')
  mkdirSync(logs)
  chmodSync(logs, 0o1777)
  return logs
}
