// Detects a stuck event loop: a timer records the monotonic clock, and a gap between two records is time in which
// nothing else could run either.

import { performance } from 'node:perf_hooks'
import { every } from './shared-ticks.ts'

const tickMs = 500

export interface Heartbeat {
  /** Why the loop counts as stuck, or undefined. A stall beyond the bound counts until the bound has passed again. */
  stuck(): string | undefined
  stop(): void
}

/** Starts the timer, which keeps no process alive. `boundMs` is the longest acceptable stall. */
export function startHeartbeat(boundMs: number): Heartbeat {
  let last = performance.now()
  let stalledMs = 0
  let stallEnded = 0
  const tick = () => {
    const now = performance.now()
    if (now - last - tickMs > boundMs) {
      stalledMs = now - last
      stallEnded = now
    }
    last = now
  }
  const ticks = every(tickMs, tick)
  return {
    stuck() {
      // A request may be served before the timer that was due during the stall.
      tick()
      if (stalledMs === 0 || performance.now() - stallEnded > boundMs) return undefined
      return `the event loop was stuck for ${(stalledMs / 1000).toFixed(1)} s`
    },
    stop: ticks.stop,
  }
}
