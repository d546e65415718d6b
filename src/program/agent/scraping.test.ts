import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { type Config, loadConfig } from '../../config/index.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { Scraping } from './scraping.ts'
import { sourcesOf, targetCounts, targetsDocument } from './scraping-view.ts'

const waitMs = 20_000

function configOf(t: TestContext, yaml: string): Config {
  const directory = mkdtempSync(join(tmpdir(), 'svc-scraping-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'svc.yaml')
  writeFileSync(path, `mode: collector\ncollectors:\n  prometheus:\n${yaml.replace(/^/gm, '    ')}\n`)
  const { config, problems } = loadConfig({ path, explicit: true, env: {} })
  assert.deepEqual(problems, [])
  return config
}

function open(t: TestContext, config: Config): Scraping {
  const pipeline = {
    intake: () => ({ add: () => undefined }),
    prepared: () => ({ prepare: () => undefined }),
  }
  const scraping = new Scraping({
    config,
    baseDir: tmpdir(),
    pipeline: pipeline as unknown as Pipeline,
    log: silentLogger,
  })
  t.after(() => scraping.stop())
  scraping.start()
  return scraping
}

function asPod(t: TestContext, name: string): void {
  const before = process.env.POD_NAME
  process.env.POD_NAME = name
  t.after(() => {
    if (before === undefined) delete process.env.POD_NAME
    else process.env.POD_NAME = before
  })
}

test('an agent that does not know its share scrapes nothing and says so until it knows', t => {
  asPod(t, 'svc-7')
  const jobs = "scrape_configs: [{ job_name: a, static_configs: [{ targets: ['127.0.0.1:1'] }] }]"
  const scraping = open(t, configOf(t, `${jobs}\nshard: { index: -1, count: 3 }`))
  assert.deepEqual(scraping.jobs, [])
  const [fault, ...others] = scraping.faults
  assert.deepEqual(others, [])
  assert.match(fault!.reason, /index is 7, but .*shard\.count is 3/)
  assert.match(fault!.hint, /POD_NAME/)
  scraping.prepare(configOf(t, `${jobs}\nshard: { index: 2, count: 3 }`)).commit()
  assert.deepEqual(scraping.faults, [])
  assert.equal(scraping.jobs.length, 1)
})

test('without targets there is nothing to share', t => {
  asPod(t, 'svc-7')
  const scraping = open(t, configOf(t, 'shard: { index: -1, count: 3 }'))
  assert.deepEqual([scraping.isOn, scraping.faults], [false, []])
})

test('a target that is down is shown before a thousand that are up in another job', async t => {
  const server = createServer((_request, response) => response.end('a 1\n'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const many = Array.from(
    { length: 1005 },
    (_, i) => `{ targets: ["127.0.0.1:${port}"], labels: { n: "${i}" } }`,
  )
  const scraping = open(
    t,
    configOf(
      t,
      `scrape_interval: 1h
scrape_timeout: 20s
scrape_configs:
  - { job_name: many, static_configs: [${many}] }
  - { job_name: few, scrape_interval: 200ms, scrape_timeout: 100ms, static_configs: [{ targets: ["127.0.0.1:1"] }] }`,
    ),
  )
  await until('all are known, and the one that is down was tried', waitMs, () => {
    const { up, down, unknown } = targetCounts(scraping.jobs)
    return down === 1 && up + unknown === 1005
  })
  const { jobs } = targetsDocument(scraping)
  assert.deepEqual(
    jobs.map(({ name, targets, down }) => [name, targets.length, down]),
    [
      ['many', 999, 0],
      ['few', 1, 1],
    ],
  )
  assert.deepEqual(
    [...sourcesOf(scraping.jobs)],
    [
      ['many', 'static', true],
      ['few', 'static', true],
    ],
  )
  assert.ok(scraping.totals.failures >= 1)
})

test('what the configuration says of parameters is in no document, what relabelling made of them is', async t => {
  const scraping = open(
    t,
    configOf(
      t,
      `scrape_configs:
  - job_name: probe
    params: { 'my token': [sekret, sekret2], module: [sekret] }
    static_configs: [{ targets: ['127.0.0.1:1'] }]
    relabel_configs: [{ source_labels: [__address__], target_label: __param_target }]
  - { job_name: none, params: { a: [sekret] }, static_configs: [{ targets: ['b:1'] }], relabel_configs: [{ action: drop }] }`,
    ),
  )
  await until('targets are known', waitMs, () =>
    scraping.jobs.every(job => job.targets.length + job.droppedTotal > 0),
  )
  const text = JSON.stringify(targetsDocument(scraping))
  assert.ok(!text.includes('sekret'), text)
  const { url, discovered_labels } = targetsDocument(scraping).jobs[0]!.targets[0]!
  const shown = 'module=[REDACTED]&my+token=[REDACTED]&my+token=[REDACTED]&target=127.0.0.1%3A1'
  assert.equal(url, `http://127.0.0.1:1/metrics?${shown}`)
  assert.equal(discovered_labels.__param_module, '[REDACTED]')
  assert.equal(discovered_labels.__address__, '127.0.0.1:1')
})
