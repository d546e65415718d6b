// Scheduling priority: an agent that any user can starve of CPU would report nothing when it matters most.

import { readFileSync, writeFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Nine times the CPU share of a process with normal priority (sched(7), nice values). */
const agentNice = -10
/**
 * The normal priority, for deferrable work whose amount depends on foreign files and names. Below it a busy host, the
 * one whose profiles matter, would get profiles without names.
 */
const backgroundNice = 0

/**
 * Raises the priority of this thread, and of threads that it starts later, if permitted (root, or CAP_SYS_NICE) and no
 * other priority was set for it. It determines who waits while all CPUs are busy; `limits.cpu` bounds the agent's CPU
 * usage. It applies only within a cgroup, and within a session if the kernel groups sessions (sched(7), autogroup); the
 * session's priority is then raised too if it is the agent's own.
 *
 * The runtime's existing helper threads compile and collect in the background: a group's CPU share follows its weight
 * (sched(7)), so helpers of the same priority on another CPU would take the share of this thread.
 */
export function raisePriority(): void {
  try {
    if (getPriority() !== 0) return
    setPriority(agentNice)
    if (leadsItsSession()) writeFileSync('/proc/self/autogroup', String(agentNice))
  } catch {
    // Not permitted, or no /proc: keep the normal priority.
  }
}

/** True if the session was created for this process, as init systems do, rather than for a user's shell. */
function leadsItsSession(): boolean {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // Fields after the name (proc_pid_stat(5)): state, parent, process group, session.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]) === process.pid
}

/** Lowers the priority of this thread, or of a child process that inherited it. */
export function lowerPriority(id = 0): void {
  try {
    setPriority(id, backgroundNice)
  } catch {
    // It exited.
  }
}
