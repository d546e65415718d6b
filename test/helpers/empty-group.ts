// A control group of the unified hierarchy, without controllers: only what is in it is another group's.

import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

let made = 0

export class EmptyGroup {
  readonly #path: string

  constructor() {
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .map(line => line.split(' '))
      .find(([, , type]) => type === 'cgroup2')?.[1]
    if (mount === undefined) throw new Error('there is no unified hierarchy of control groups')
    this.#path = join(mount, `svc-test-${process.pid}-${made++}`)
    mkdirSync(this.#path)
  }

  /** What a command is passed to, to run in the group. */
  get wrapper(): readonly string[] {
    return ['sh', '-c', `echo $$ >"${this.#path}/cgroup.procs" && exec "$@"`, 'sh']
  }

  /** After all that ran in it has ended. */
  close(): void {
    rmdirSync(this.#path)
  }
}
