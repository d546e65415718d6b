// owns: process
// Collector mode under load: each sample of each page that a target served is in what the receiver has.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
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
  const config = {
    mode: 'collector',
    collectors: {
      prometheus: {
        scrape_configs: [
          {
            job_name: 'shop',
            scrape_interval: '1s',
            scrape_timeout: '1s',
            static_configs: [{ targets: generator.addresses }],
          },
        ],
      },
    },
  }
  const agent = await AgentProcess.start({ endpoint: sink.grpcEndpoint, config: config as unknown as Tree })
  open.push(() => agent.stop())
  await until(
    () => `each target was scraped ${rounds} times:\n${agent.logText()}`,
    rounds * 10_000 + 60_000,
    async () => (await generator.report()).fewest >= rounds,
  )
  const failures = (await agent.metrics()).sum('svc_scrape_failures_total')
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
  const { scrapes, samples } = await generator.report()
  const counts = await sink.counts()
  const whole = samples / scrapes
  assert.equal(counts.uncounted, 0)
  assert.equal(counts.samples % whole, 0, 'pages come whole')
  const pages = counts.samples / whole
  // At the end one of each target may be on its way: served, and not scraped.
  assert.ok(pages <= scrapes && pages >= scrapes - failures - targets, `${pages} of ${scrapes} pages`)
}

test('many pages of many targets come whole', async () => {
  await scrapeAll(soak ? 50 : 10, 1000)
})

test('a large page comes whole', async () => {
  await scrapeAll(1, soak ? 200_000 : 20_000)
})
