import { noAccess, type ScrapeJob } from '../../src/signals/metrics/scraping/scrape-job.ts'

/** A job that asks for nothing special, but for what a test names. */
export function scrapeJob(own: Partial<ScrapeJob> = {}): ScrapeJob {
  return {
    name: 'job',
    intervalMs: 60_000,
    timeoutMs: 10_000,
    scheme: 'http',
    metricsPath: '/metrics',
    params: {},
    honorLabels: false,
    honorTimestamps: true,
    trackTimestampsStaleness: false,
    compression: false,
    lenient: false,
    limits: { bodyBytes: 0, samples: 0, labels: 0, labelNameLength: 0, labelValueLength: 0, targets: 0 },
    access: noAccess,
    relabel: [],
    metricRelabel: [],
    sources: [],
    externalLabels: new Map(),
    ...own,
  }
}
