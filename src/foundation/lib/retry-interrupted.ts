/** Repeats a system call that a signal interrupted (EINTR, signal(7)). */
export function retryInterrupted(call: () => number): number {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINTR') throw error
    }
  }
}
