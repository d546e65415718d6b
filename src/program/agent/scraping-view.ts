// The state of scraping, as a document and in numbers.

import type { JobState, TargetState } from '../../signals/metrics/scraping/scrape-manager.ts'
import type { TargetsDocument } from '../../view/api/types.ts'
import type { Scraping } from './scraping.ts'
import { shownLabels, shownUrl } from './shown-target.ts'

const maxTargets = 1_000
const maxDropped = 100

export function targetsDocument(scraping: Scraping): TargetsDocument {
  const { jobs } = scraping
  // Across all jobs, so that a job with thousands of healthy targets does not hide the failed ones of the next.
  const shown = new Set(
    jobs
      .flatMap(job => job.targets)
      .sort(worstFirst)
      .slice(0, maxTargets),
  )
  return {
    enabled: scraping.isOn,
    jobs: jobs.map(job => {
      const targets = job.targets.filter(target => shown.has(target)).sort(worstFirst)
      return {
        name: job.name,
        ...healths(job),
        dropped_total: job.droppedTotal,
        sources: job.sources.map(({ kind, connected, reason, targets }) => ({
          kind,
          connected,
          reason,
          targets,
        })),
        targets: targets.map(targetOf),
        dropped: job.dropped.slice(0, maxDropped).map(({ discovered, reason }) => ({
          discovered_labels: shownLabels(discovered),
          reason,
        })),
      }
    }),
  }
}

/** Whether each source of targets answers: one failure of a kind counts for its whole job. */
export function sourcesOf(jobs: readonly JobState[]): Iterable<readonly [string, string, boolean]> {
  const worst = new Map<string, readonly [job: string, kind: string, connected: boolean]>()
  for (const { name, sources } of jobs)
    for (const { kind, connected } of sources) {
      const key = JSON.stringify([name, kind])
      worst.set(key, [name, kind, connected && (worst.get(key)?.[2] ?? true)])
    }
  return worst.values()
}

/** Targets by the result of their last scrape. */
export function targetCounts(
  jobs: readonly JobState[],
): Readonly<Record<'up' | 'down' | 'unknown' | 'dropped', number>> {
  const targets = { up: 0, down: 0, unknown: 0, dropped: 0 }
  for (const job of jobs) {
    const { up, down, unknown } = healths(job)
    targets.up += up
    targets.down += down
    targets.unknown += unknown
    targets.dropped += job.droppedTotal
  }
  return targets
}

function healths({ targets }: JobState): { up: number; down: number; unknown: number } {
  const counts = { up: 0, down: 0, unknown: 0 }
  for (const { health } of targets) counts[health]++
  return counts
}

const order = { down: 0, unknown: 1, up: 2 } as const

function worstFirst(a: TargetState, b: TargetState): number {
  return order[a.health] - order[b.health] || (a.target.url < b.target.url ? -1 : 1)
}

function targetOf(state: TargetState): TargetsDocument['jobs'][number]['targets'][number] {
  const { target } = state
  return {
    url: shownUrl(target),
    labels: Object.fromEntries(target.labels),
    discovered_labels: shownLabels(target.discovered),
    health: state.health,
    error: state.error,
    error_type: state.errorType,
    warning: state.warning,
    last_scrape: state.lastScrapeMs === 0 ? null : new Date(state.lastScrapeMs).toISOString(),
    duration_ms: Math.round(state.durationMs),
    interval_ms: target.intervalMs,
    timeout_ms: target.timeoutMs,
    samples: state.samples,
    series: state.series,
    wire_bytes: state.wireBytes,
    scrapes: state.scrapes,
    failures: state.failures,
    skipped: state.missed,
    series_changes: state.wholeReads,
  }
}
