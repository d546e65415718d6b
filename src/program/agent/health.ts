// Whether a stage of the agent is stuck although its event loop turns.

import type { Signal } from '../../foundation/model/signal.ts'
import type { Health } from '../../view/api/types.ts'

/** How long the event loop or a stage may be stuck before `/healthz` says so. */
export const stuckMs = 10_000
/** Batch timeouts that an item may wait for its batch, at the least `stuckMs`. */
const batchTimeouts = 10

export interface Stages {
  /** Milliseconds since the capture was last drained, which is due every 100 ms. */
  readonly sinceDrainMs: number
  /** How long the oldest item of each signal has waited for its batch, in milliseconds. */
  readonly batchingMs: Readonly<Record<Signal, number>>
  readonly batchTimeoutMs: number
}

/** A receiver that does not answer is no matter of health: what waits for it is queued, and readiness tells. */
export function judgeStages({ sinceDrainMs, batchingMs, batchTimeoutMs }: Stages): Health {
  if (sinceDrainMs > stuckMs)
    return { healthy: false, reason: `the capture was last drained ${seconds(sinceDrainMs)} s ago` }
  const boundMs = Math.max(stuckMs, batchTimeouts * batchTimeoutMs)
  for (const [signal, waitedMs] of Object.entries(batchingMs)) {
    if (waitedMs > boundMs)
      return { healthy: false, reason: `${signal} have been waiting ${seconds(waitedMs)} s for their batch` }
  }
  return { healthy: true }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
