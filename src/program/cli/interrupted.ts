/** The user's request to stop. */
export interface Interruption {
  /** Aborted by ctrl-c, SIGTERM, SIGHUP, a closed standard output, or `abort`. */
  readonly signal: AbortSignal
  abort(): void
  /** Removes the listeners. */
  stop(): void
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function interrupted(): Interruption {
  const controller = new AbortController()
  const abort = () => controller.abort()
  for (const name of signals) process.on(name, abort)
  process.stdout.on('error', abort)
  return {
    signal: controller.signal,
    abort,
    stop: () => {
      for (const name of signals) process.off(name, abort)
      process.stdout.off('error', abort)
    },
  }
}
