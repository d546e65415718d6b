import type { Batch } from '../../src/foundation/model/batch.ts'
import type { Metric } from '../../src/foundation/model/metric.ts'
import { Batcher, type ItemProcessor } from '../../src/pipeline/batcher.ts'
import { metricEncoding } from '../../src/pipeline/exporters/otlp/encode-metric.ts'
import { RequestBuilder } from '../../src/pipeline/exporters/otlp/request.ts'
import { Account } from '../../src/pipeline/ledger.ts'
import type { ScrapeJob } from '../../src/signals/metrics/scraping/scrape-job.ts'
import type { SeriesSink } from '../../src/signals/metrics/scraping/series-sink.ts'
import type { Target } from '../../src/signals/metrics/scraping/target.ts'
import type { FetchedPage } from '../../src/signals/metrics/scraping/target-series.ts'
import { type ReceivedPoint, receivedPoints } from './metric-receiver.ts'
import { scrapeJob } from './scrape-job.ts'

/** A process that looks at each point, so that metrics come whole. */
export const passThrough: ItemProcessor<Metric> = {
  run: (resource, scope, metric, out) => out.add(resource, scope, metric),
}

/** What is made of targets' pages, as a receiver reads it. */
export class ReceivedSeries {
  readonly account = new Account()
  contradictions = 0
  readonly sink: SeriesSink
  readonly #batcher: Batcher<Metric>
  readonly #batches: Batch[] = []

  constructor(process?: ItemProcessor<Metric>) {
    const batcher = new Batcher<Metric>({
      builder: new RequestBuilder(metricEncoding),
      account: this.account,
      count: metric => metric.points.length,
      out: batch => this.#batches.push(batch),
    })
    this.#batcher = batcher
    this.accept(process)
    this.sink = {
      prepared: batcher,
      add: (resource, scope, metric) => batcher.add(resource, scope, metric),
      drop: (reason, points) => this.account.dropAtIntake(reason, points),
      contradicts: () => {
        this.contradictions++
      },
    }
  }

  accept(process?: ItemProcessor<Metric>): void {
    this.#batcher.accept({ maxItems: 1e9, maxBytes: 1 << 28, timeoutMs: 50 }, process)
  }

  /** What was told since the last time. */
  take(): ReceivedPoint[] {
    this.#batcher.cut()
    return this.#batches.splice(0).flatMap(({ body }) => receivedPoints(body))
  }

  /** The same as lines: `metric{labels} value`, in order. */
  lines(): string[] {
    return this.take().map(lineOf).sort()
  }

  /** Points lost since the start. */
  get lost(): Record<string, number> {
    return Object.fromEntries(this.account.dropped)
  }
}

function lineOf({ metric, attributes, ended, value, fields }: ReceivedPoint): string {
  const labels = Object.entries(attributes).map(([name, text]) => `${name}=${text}`)
  const told = value ?? `${fields.count} ${fields.sum} [${fields.bucketCounts ?? ''}]`
  return `${metric}{${labels}} ${ended ? 'ended' : told}`
}

export function targetOf(own: Partial<ScrapeJob> = {}, more: Partial<Target> = {}): Target {
  const job = scrapeJob(own)
  const { intervalMs, timeoutMs } = job
  return {
    job,
    id: 'target',
    url: 'http://shop:80/metrics',
    labels: new Map([
      ['job', job.name],
      ['instance', 'shop:80'],
    ]),
    discovered: new Map(),
    intervalMs,
    timeoutMs,
    ...more,
  }
}

export function pageOf(text: string | Buffer, contentType = 'text/plain; version=0.0.4'): FetchedPage {
  return { body: Buffer.from(text), contentType }
}

export const openMetrics = 'application/openmetrics-text; version=1.0.0'
