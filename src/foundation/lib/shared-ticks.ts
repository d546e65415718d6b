// Periodic work of the whole process. An idle process pays for each wake-up, several times what the work costs, so work
// with different periods runs at whole multiples of them on one clock, and shares wake-ups.

export interface Ticks {
  /** Changes the period. */
  every(periodMs: number): void
  stop(): void
}

interface Work {
  periodMs: number
  readonly run: () => void
  /** By `performance.now()`. */
  dueMs: number
}

/** Timers run up to a millisecond early. */
const slackMs = 1

const all = new Set<Work>()
let timer: NodeJS.Timeout | undefined
let armedMs = Number.POSITIVE_INFINITY

/**
 * Calls `run` every `periodMs` milliseconds, until it is stopped. Missed calls are not made up for. Like an unreferenced
 * timer it keeps no process alive; what `run` throws is an uncaught exception and stops nothing.
 */
export function every(periodMs: number, run: () => void): Ticks {
  const work: Work = { periodMs, run, dueMs: dueAfter(performance.now(), periodMs) }
  all.add(work)
  arm()
  return {
    every: periodMs => {
      work.periodMs = periodMs
      work.dueMs = dueAfter(performance.now(), periodMs)
      if (all.has(work)) arm()
    },
    stop: () => {
      all.delete(work)
      if (all.size === 0) disarm()
    },
  }
}

/** Milliseconds until work of this period runs next, for waits that may share its wake-up. */
export function untilTick(periodMs: number): number {
  const nowMs = performance.now()
  return dueAfter(nowMs, periodMs) - nowMs
}

/** The next multiple of the period. */
function dueAfter(nowMs: number, periodMs: number): number {
  return Math.floor((nowMs + slackMs) / periodMs + 1) * periodMs
}

function wake(): void {
  timer = undefined
  armedMs = Number.POSITIVE_INFINITY
  const nowMs = performance.now()
  for (const work of all) {
    if (work.dueMs - nowMs > slackMs) continue
    work.dueMs = dueAfter(nowMs, work.periodMs)
    try {
      work.run()
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
  arm()
}

function arm(): void {
  let dueMs = Number.POSITIVE_INFINITY
  for (const work of all) dueMs = Math.min(dueMs, work.dueMs)
  if (dueMs >= armedMs) return
  disarm()
  armedMs = dueMs
  timer = setTimeout(wake, Math.max(0, dueMs - performance.now()))
  timer.unref()
}

function disarm(): void {
  clearTimeout(timer)
  timer = undefined
  armedMs = Number.POSITIVE_INFINITY
}
