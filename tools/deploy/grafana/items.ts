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
const intended = Object.entries(dropReasons).flatMap(([reason, { intended: asked }]) =>
  asked ? [reason] : [],
)

/** Matches unintended losses. */
export const unintended = `reason!~"${intended.join('|')}"`
