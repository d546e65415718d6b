// Parts of the documents that depend only on their inputs.

import type { Of } from './schema.ts'
import type { HealthDocument, readinessDocument } from './schemas.ts'
import type { EbpfDocument, ExportDocument, Health, ReadinessChecks, StatusDocument } from './types.ts'

/** Duration since the start as documents show it: `24h15m30s`, without leading zero units and without padding. */
export function uptimeText(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  if (hours > 0) return `${hours}h${minutes}m${seconds % 60}s`
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`
}

/** The readiness document: ready if every check is `ok`. Warnings do not count. */
export function readinessOf(
  checks: ReadinessChecks,
  warnings: readonly string[] = [],
): Of<typeof readinessDocument> {
  const ready = Object.values(checks).every(check => check === 'ok')
  return {
    status: ready ? 'ready' : 'not_ready',
    checks,
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  }
}

/**
 * Public form: without the receiver's messages, as in `publicExport`, without errors of the configuration, and without
 * the error text of the last run.
 */
export function publicStatus(document: StatusDocument): StatusDocument {
  const { last_run, reload } = document
  return {
    ...document,
    last_run: last_run && { ...last_run, reason: last_run.reason.split(' (', 1)[0] ?? '' },
    reload: { ...reload, reason: withheld(reload.reason), place: nameOf(reload.place) },
    degraded: document.degraded.map(each =>
      /^(export|reload)/.test(each.subsystem) ? { ...each, reason: withheld(each.reason) } : each,
    ),
  }
}

/** Public form: only the names of files that processes map, without the directories of other users' programs. */
export function publicEbpf(document: EbpfDocument): EbpfDocument {
  const { profiling } = document
  return {
    ...document,
    tls: document.tls.map(each => ({ ...each, path: nameOf(each.path), reason: withheld(each.reason) })),
    profiling: {
      ...profiling,
      without_unwind_table: profiling.without_unwind_table.map(({ path, reason }) => ({
        path: nameOf(path),
        reason: withheld(reason),
      })),
    },
  }
}

/** Public form: without the receiver's messages, which may repeat exported data. */
export function publicExport(document: ExportDocument): ExportDocument {
  return {
    ...document,
    last_error: document.last_error && withheld(document.last_error),
    destinations: document.destinations.map(each => ({
      ...each,
      last_error: each.last_error && withheld(each.last_error),
      last_warning: each.last_warning && withheld(each.last_warning),
    })),
  }
}

function withheld(words: string): string {
  return words === '' ? '' : 'visible to root and the user of svc only: run "sudo svc status"'
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

export function healthOf({ healthy, reason }: Health): HealthDocument {
  return healthy ? { status: 'ok' } : { status: 'unhealthy', reason: reason ?? 'no reason given' }
}
