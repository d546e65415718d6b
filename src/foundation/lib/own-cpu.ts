// CPU time of this process and its child processes.

import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: the same on all architectures that svc runs on. */
const tickMs = 10
/** Number of reads after which the list of children is refreshed. */
const everyLooks = 10

/** Cumulative. The last second of a child that exits is lost. */
export class OwnCpu {
  readonly #children = new Map<number, number>()
  #childrenMs = 0
  #looks = 0

  /** Milliseconds of all threads and children since the start. Never decreases. */
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
      // A thread exited, or the kernel lacks this file (CONFIG_PROC_CHILDREN): use the children found so far.
    }
  }
}

/** Undefined: it exited. */
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
