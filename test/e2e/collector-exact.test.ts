// owns: load
// Collector mode under load: each sample of each page that a target served is in what the receiver has.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import type { TargetsDocument } from '../../src/view/api/types.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { MetricSink } from '../helpers/metric-sink.ts'
import { PageGenerator } from '../helpers/page-generator.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const rounds = soak ? 60 : 5

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function scrapeAll(targets: number, series: number): Promise<void> {
  const generator = await PageGenerator.start({ targets, series, intervalMs: 1000 })
  open.push(() => generator.close())
  const sink = await MetricSink.start('shop_')
  open.push(() => sink.close())
  const scrapeConfig = (targets: readonly string[]) => ({
    collectors: {
      prometheus: {
        scrape_configs: [
          { job_name: 'shop', scrape_interval: '1s', scrape_timeout: '1s', static_configs: [{ targets }] },
        ],
      },
    },
  })
  const config = {
    mode: 'collector',
    self_telemetry: { debug: true },
    pipeline: { limits: { cardinality: { enabled: false } } }, // a large page has more series than the default allows
    ...scrapeConfig(generator.addresses),
  }
  const agent = await AgentProcess.start({ endpoint: sink.grpcEndpoint, config: config as unknown as Tree })
  open.push(() => agent.stop())
  await until(
    () => `each target was scraped ${rounds} times:\n${agent.logText()}`,
    rounds * 10_000 + 60_000,
    async () => (await generator.report()).fewest >= rounds,
  )
  // After the last scrape nothing is under way: what was served is what has come.
  agent.configure(scrapeConfig([]) as unknown as Tree)
  agent.signal('SIGHUP')
  const targetsLeft = async () => {
    const { jobs } = await agent.document<TargetsDocument>('/status/targets')
    return jobs.flatMap(job => job.targets).length
  }
  await until('no target is left', 60_000, async () => (await targetsLeft()) === 0)
  await until('all is sent', 120_000, async () => (await agent.balances()).metrics!.queued === 0)
  const page = await agent.metrics()
  const failures = page.sum('svc_scrape_failures_total')
  assert.equal(
    page.sum('svc_metrics_collected_total', 'signal_type="scraped"'),
    page.sum('svc_metrics_collected_total'),
  )
  const lost = Object.entries((await agent.balances()).metrics!.dropped).filter(([, items]) => items > 0)
  assert.deepEqual(lost, [])
  const { scrapes, samples } = await generator.report()
  const counts = await sink.counts()
  assert.equal(counts.uncounted, 0)
  const pages = counts.samples / (samples / scrapes)
  assert.ok(Number.isInteger(pages), `pages come whole, not ${pages} of ${scrapes}`)
  // A page that came late is served and not scraped, as is one of each target that the end of its scrapes cut off.
  assert.ok(pages <= scrapes && pages >= scrapes - failures - targets, `${pages} of ${scrapes} pages`)
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
}

test('many pages of many targets come whole', async () => {
  await scrapeAll(soak ? 50 : 10, 1000)
})

test('a large page comes whole', async () => {
  await scrapeAll(1, soak ? 200_000 : 20_000)
})
