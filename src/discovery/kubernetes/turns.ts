import { setImmediate as nextTurn } from 'node:timers/promises'

const turnMs = 1

/** Divides long work, so that others come to their turn after about a millisecond of it. */
export class Turns {
  private startedAt = performance.now()

  /** Undefined while there is time left, else what to wait for before going on. */
  next(): Promise<void> | undefined {
    if (performance.now() - this.startedAt < turnMs) return undefined
    // Not one that is unref'ed: it would wait for whatever wakes the event loop next.
    return nextTurn().then(() => {
      this.startedAt = performance.now()
    })
  }
}

/** Resolves after a time, or as soon as `stop` is raised. Keeps no process alive. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms).unref()
    if (stop.aborted) end()
    else stop.addEventListener('abort', end)
  })
}
