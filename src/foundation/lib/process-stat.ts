/** PF_EXITING of include/linux/sched.h. */
const exiting = 4
/** PF_KTHREAD. */
const kernelThread = 0x200000

/**
 * Fields of /proc/PID/stat from the state, which is field 3 (proc_pid_stat(5)): the first `count` of them. The name
 * before them is in parentheses and may contain any character.
 */
export function statFields(stat: string, count: number): readonly string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ', count)
}

/** True if the process is exiting, by its flags, field 9. */
export function isEnding(fields: readonly string[]): boolean {
  return (Number(fields[6]) & exiting) !== 0
}

/** True if it is a kernel thread, by the same flags; requires the first 7 fields. */
export function isKernelThread(fields: readonly string[]): boolean {
  return (Number(fields[6]) & kernelThread) !== 0
}
