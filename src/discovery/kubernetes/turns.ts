import { setImmediate as nextTurn } from 'node:timers/promises'

const turnMs = 1

/** Divides long work into slices of about a millisecond, so that other work can run. */
export class Turns {
  private startedAt = performance.now()

  /** Undefined while time is left, else a promise to await before continuing. */
  next(): Promise<void> | undefined {
    if (performance.now() - this.startedAt < turnMs) return undefined
    // Not unref'ed: it would wait for the next event of the loop.
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
