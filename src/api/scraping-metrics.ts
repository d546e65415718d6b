// The agent's metrics about what it scrapes.

import type { Registry } from '../lib/registry.ts'

/** Totals since the start of the process, and what there is now. */
export interface ScrapingStats {
  /** Targets by how their last scrape went. */
  readonly targets: Readonly<Record<'up' | 'down' | 'unknown' | 'dropped', number>>
  readonly scrapes: number
  readonly failures: number
  readonly missed: number
  readonly samples: number
  readonly wholeReads: number
  readonly contradictions: number
  /** Whether each source of targets answers, by job and kind. */
  readonly sources: readonly (readonly [job: string, kind: string, connected: boolean])[]
}

type Total = 'scrapes' | 'failures' | 'missed' | 'samples' | 'wholeReads' | 'contradictions'

const totals: readonly (readonly [name: string, help: string, of: Total])[] = [
  ['scrapes_total', 'Completed scrapes of targets.', 'scrapes'],
  ['scrape_failures_total', 'Failed scrapes.', 'failures'],
  ['scrapes_missed_total', 'Scrapes skipped because the previous one was still running.', 'missed'],
  ['scrape_samples_total', 'Samples received from targets.', 'samples'],
  ['scrape_whole_reads_total', 'Pages with different series than the page before.', 'wholeReads'],
  ['scrape_contradictions_total', 'Pages that svc misread: a bug in svc.', 'contradictions'],
]

/** Declares them; `named` puts the prefix before a name. */
export function scrapingMetrics(
  registry: Registry,
  named: (name: string) => string,
  source: () => ScrapingStats,
): void {
  registry.collector(
    named('scrape_targets'),
    'Targets by result of their last scrape; dropped targets are not scraped by this agent.',
    'gauge',
    ['health'],
    emit => {
      for (const [health, count] of Object.entries(source().targets)) emit(count, health)
    },
  )
  for (const [name, help, of] of totals)
    registry.collector(named(name), help, 'counter', [], emit => emit(source()[of]))
  registry.collector(
    named('scrape_source_connected'),
    'Whether a source of targets answers: 1 if it does.',
    'gauge',
    ['job', 'kind'],
    emit => {
      const worst = new Map<string, readonly [string, string, boolean]>()
      for (const [job, kind, connected] of source().sources) {
        const key = JSON.stringify([job, kind])
        worst.set(key, [job, kind, connected && (worst.get(key)?.[2] ?? true)])
      }
      for (const [job, kind, connected] of worst.values()) emit(connected ? 1 : 0, job, kind)
    },
  )
}
