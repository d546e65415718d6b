// Scheduling priority: an agent that any user could keep from running would report nothing when it matters most.

import { readFileSync, writeFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Nine times the share of a CPU that a process of the usual priority has (sched(7), nice values). */
const agentNice = -10
/**
 * Of work that may wait, and that foreign files and names make much of: everybody's. Below it a busy host, which is the one
 * whose profiles matter, would have them without names.
 */
const backgroundNice = 0

/**
 * Raises the priority of this thread, and of those that it starts later, where it may (root, or CAP_SYS_NICE) and nobody
 * chose another priority for it. It decides who waits while all CPUs are busy; how much CPU the agent takes is bounded by
 * `limits.cpu`. It counts within a control group only, and within a session where the kernel makes a group of each
 * (sched(7), autogroup), which is then raised too if it is the agent's own.
 *
 * The runtime's helpers, which are there already, compile and collect in the background: a group's share of a CPU goes to
 * where its weight is (sched(7)), so that helpers of the same priority on the other CPU would take that of this thread.
 */
export function raisePriority(): void {
  try {
    if (getPriority() !== 0) return
    setPriority(agentNice)
    if (leadsItsSession()) writeFileSync('/proc/self/autogroup', String(agentNice))
  } catch {
    // Not allowed, or no /proc: the usual priority.
  }
}

/** Whether the session was begun for this process, as init systems do it, and is not that of somebody's shell. */
function leadsItsSession(): boolean {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // The fields behind the name (proc_pid_stat(5)): state, parent, process group, session.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]) === process.pid
}

/** Lowers that of this thread, or of a process that was begun by it and has its priority from it. */
export function lowerPriority(id = 0): void {
  try {
    setPriority(id, backgroundNice)
  } catch {
    // It ended.
  }
}
