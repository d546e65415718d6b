/** A system call that is made again where a signal that came while it waited ended it (EINTR, signal(7)). */
export function retryInterrupted(call: () => number): number {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINTR') throw error
    }
  }
}
