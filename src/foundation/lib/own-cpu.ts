// CPU time of this process and of the programs that it started.

import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: the same on all architectures that svc runs on. */
const tickMs = 10
/** Looks at CPU after which it is asked anew which programs run. */
const everyLooks = 10

/** Adds up. A program that ends takes its last second with it. */
export class OwnCpu {
  readonly #children = new Map<number, number>()
  #childrenMs = 0
  #looks = 0

  /** Milliseconds of all threads and programs since the start. Never falls. */
  look(): number {
    if (this.#looks++ % everyLooks === 0) this.#findChildren()
    for (const [pid, before] of this.#children) {
      const now = cpuMsOf(pid)
      if (now === undefined) this.#children.delete(pid)
      else {
        this.#childrenMs += Math.max(0, now - before)
        this.#children.set(pid, now)
      }
    }
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000 + this.#childrenMs
  }

  #findChildren(): void {
    try {
      for (const thread of readdirSync('/proc/self/task')) {
        const text = readFileSync(`/proc/self/task/${thread}/children`, 'latin1')
        for (const pid of text.split(' ').filter(Boolean).map(Number))
          if (!this.#children.has(pid)) this.#children.set(pid, cpuMsOf(pid) ?? 0)
      }
    } catch {
      // A thread ended, or the kernel has no such file (CONFIG_PROC_CHILDREN): those that were found count.
    }
  }
}

/** Undefined: it ended. */
function cpuMsOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // utime and stime (proc_pid_stat(5)).
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return undefined
  }
}
