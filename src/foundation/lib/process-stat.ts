/** PF_EXITING of include/linux/sched.h. */
const exiting = 4
/** PF_KTHREAD. */
const kernelThread = 0x200000

/**
 * Fields of /proc/PID/stat from the state on, which is field 3 (proc_pid_stat(5)): the first `count` of them. The name
 * before them stands in parentheses and may hold any character.
 */
export function statFields(stat: string, count: number): readonly string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ', count)
}

/** Whether the process is on its way out, by its flags, field 9. */
export function isEnding(fields: readonly string[]): boolean {
  return (Number(fields[6]) & exiting) !== 0
}

/** Whether it is a thread of the kernel, by the same flags; the first 7 fields are needed. */
export function isKernelThread(fields: readonly string[]): boolean {
  return (Number(fields[6]) & kernelThread) !== 0
}
