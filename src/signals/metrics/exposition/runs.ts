// Metrics about the collectors themselves.

import { counter, type Family, gauge } from '../../../foundation/model/collector.ts'
import type { Run } from './gatherer.ts'
import type { Page, Source } from './page.ts'

const duration = gauge(
  'scrape_collector_duration_seconds',
  'Time that a collector took for its last reading.',
  {
    labels: ['collector'],
  },
)
const success = gauge(
  'scrape_collector_success',
  'Whether a collector read what it is for (1), or not (0).',
  {
    labels: ['collector'],
  },
)
const timeout = gauge(
  'scrape_collector_timeout',
  'Whether a collector was cut off because the scrape had no more time (1), or not (0).',
  { labels: ['collector'] },
)
const reason = gauge('scrape_collector_reason_info', 'Why a collector has no readings. The value is 1.', {
  labels: ['collector', 'outcome', 'reason'],
})
const duplicates = counter(
  'scrape_collector_duplicate_series_total',
  'Readings of a collector that were left out because their series had one already.',
  { labels: ['collector'] },
)

/** Families that are also on the page of the replaced exporter. */
export const runFamilies: readonly Family[] = [duration, success]
/** Families only on the agent's page. */
export const extendedRunFamilies: readonly Family[] = [timeout, reason, duplicates]

/** Shows the results of the collectors. `extended`: with the families that the replaced exporter lacks. */
export function showRuns(page: Page, source: Source, runs: readonly Run[], extended: boolean): void {
  const readings = page.begin(source)
  for (const run of runs) {
    readings.set(duration, Math.round(run.seconds * 1e9) / 1e9, run.name)
    readings.set(success, run.outcome === 'success' ? 1 : 0, run.name)
    if (!extended) continue
    if (run.reader.wait !== undefined) readings.set(timeout, run.outcome === 'late' ? 1 : 0, run.name)
    if (run.outcome !== 'success') readings.set(reason, 1, run.name, run.outcome, run.reason.slice(0, 200))
    if (run.duplicates > 0) readings.set(duplicates, run.duplicates, run.name)
  }
}
