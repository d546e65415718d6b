// Detects a stuck stage of the agent even if its event loop runs.

import type { Signal } from '../../foundation/model/signal.ts'
import type { Health } from '../../view/api/types.ts'

/** Time after which `/healthz` reports a stuck event loop or stage. */
export const stuckMs = 10_000
/** Batch timeouts that an item may wait for its batch, at least `stuckMs`. */
const batchTimeouts = 10

export interface Stages {
  /** Milliseconds since the capture was last drained, which is due every 100 ms. */
  readonly sinceDrainMs: number
  /** Age of the oldest item that waits for its batch, by signal, in milliseconds. */
  readonly batchingMs: Readonly<Record<Signal, number>>
  readonly batchTimeoutMs: number
}

/** An unreachable receiver does not affect health: its data is queued, and readiness reports it. */
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
