// Parts of the documents that follow from nothing but their inputs.

import type { Of } from './schema.ts'
import type { HealthDocument, readinessDocument } from './schemas.ts'
import type { Health, ReadinessChecks } from './types.ts'

/** Duration since the start as documents show it: `24h15m30s`, without leading zero units and without padding. */
export function uptimeText(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  if (hours > 0) return `${hours}h${minutes}m${seconds % 60}s`
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`
}

/** The readiness document: ready when every check is `ok`. */
export function readinessOf(checks: ReadinessChecks): Of<typeof readinessDocument> {
  const ready = Object.values(checks).every(check => check === 'ok')
  return { status: ready ? 'ready' : 'not_ready', checks }
}

export function healthOf({ healthy, reason }: Health): HealthDocument {
  return healthy ? { status: 'ok' } : { status: 'unhealthy', reason: reason ?? 'no reason given' }
}
