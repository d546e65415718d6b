// Items of the pipeline, as the agent's metrics call them.
import { dropReasons } from '../../../src/foundation/model/drop-reasons.ts'

/** Signal → what its items are called in metrics. */
export const signalItems = {
  traces: 'spans',
  metrics: 'metrics',
  logs: 'logs',
  profiles: 'profiles',
} as const

/** Intended reasons are no losses. */
const wished = Object.entries(dropReasons).flatMap(([reason, { wished: asked }]) => (asked ? [reason] : []))

/** Matches unintended losses. */
export const unwished = `reason!~"${wished.join('|')}"`
