// Items of the pipeline, with their names in the agent's metrics.
import { dropReasons } from '../../../src/foundation/model/drop-reasons.ts'

/** Signal → name of its items in metrics. */
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
