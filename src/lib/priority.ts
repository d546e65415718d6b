// Scheduling priority: an agent that any user could keep from running would report nothing when it matters most.

import { readdirSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Nine times the share of a CPU that a process of the usual priority has (sched(7), nice values). */
const agentNice = -10
/** Of work that may wait, and that foreign files and names make much of. */
const backgroundNice = 5

/**
 * Raises the priority of all threads of this process, where it may (root, or CAP_SYS_NICE) and nobody chose another
 * priority for it. It decides who waits while all CPUs are busy; how much CPU the agent takes is bounded by
 * `limits.cpu`. It counts within a control group only.
 */
export function raisePriority(): void {
  try {
    if (getPriority() !== 0) return
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), agentNice)
  } catch {
    // Not allowed, or no /proc: the usual priority.
  }
}

/** Lowers that of this thread, or of a process that was begun by it and has its priority from it. */
export function lowerPriority(id = 0): void {
  try {
    setPriority(id, backgroundNice)
  } catch {
    // It ended.
  }
}
