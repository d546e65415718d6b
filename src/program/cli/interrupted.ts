/** Ends when a person has seen enough. */
export interface Interruption {
  /** Aborted by ctrl-c, by SIGTERM, by SIGHUP, when nobody reads standard output any more, or by `abort`. */
  readonly signal: AbortSignal
  abort(): void
  /** Listens no longer. */
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
