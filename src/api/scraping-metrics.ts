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
  ['scrapes_total', 'Scrapes of targets that ended.', 'scrapes'],
  ['scrape_failures_total', 'Scrapes that failed.', 'failures'],
  ['scrapes_missed_total', 'Moments to scrape that passed while the scrape before was not over.', 'missed'],
  ['scrape_samples_total', 'Samples that targets told.', 'samples'],
  ['scrape_whole_reads_total', 'Pages whose series differed from those of the page before.', 'wholeReads'],
  ['scrape_contradictions_total', 'Pages that svc read wrongly: a fault of svc.', 'contradictions'],
]

/** Declares them; `named` puts the prefix before a name. */
export function scrapingMetrics(
  registry: Registry,
  named: (name: string) => string,
  source: () => ScrapingStats,
): void {
  registry.collector(
    named('scrape_targets'),
    'Targets by how their last scrape went; those that are dropped are not scraped here.',
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
    'Whether a source of targets answers.',
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
