import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { TargetsDocument } from '../../src/api/types.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { MetricReceiver } from '../helpers/metric-receiver.ts'
import { until } from '../helpers/program.ts'

const waitMs = 30_000
let open: { close(): unknown }[] = []

afterEach(async () => {
  for (const one of open.reverse()) await one.close()
  open = []
})

type Answer = (request: IncomingMessage, response: ServerResponse, scrape: number) => void

/** A target, whose page is what `answer` says. */
async function startTarget(answer: Answer): Promise<{ address: string; scrapes: () => number }> {
  let scrapes = 0
  const server: Server = createServer((request, response) => answer(request, response, ++scrapes))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  open.push({
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  })
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, scrapes: () => scrapes }
}

const page =
  (text: (scrape: number) => string): Answer =>
  (_request, response, scrape) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end(text(scrape))
  }

async function startReceiver(): Promise<MetricReceiver> {
  const receiver = await MetricReceiver.start()
  open.push(receiver)
  return receiver
}

async function startCollector(
  receiver: MetricReceiver,
  prometheus: Tree,
  more: Tree = {},
): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    config: {
      mode: 'collector',
      otlp: { protocol: 'http/protobuf' },
      pipeline: { export: { batch: { timeout: '50ms' } } },
      collectors: { prometheus: { scrape_interval: '200ms', scrape_timeout: '150ms', ...prometheus } },
      ...more,
    },
  })
  open.push({ close: () => agent.stop() })
  return agent
}

async function targetsOf(agent: AgentProcess): Promise<TargetsDocument['jobs'][number]['targets']> {
  const { text } = await agent.get('/status/targets')
  return (JSON.parse(text) as TargetsDocument).jobs.flatMap(({ targets }) => targets)
}

test('what a target tells arrives as it is, scrape by scrape', async () => {
  const shop = await startTarget(
    page(
      n => `# HELP orders_total Orders.
# TYPE orders_total counter
orders_total{kind="new"} ${n}
orders_total{kind="old"} ${n * 1000.5}
# TYPE stock gauge
stock -${n}
# TYPE latency_seconds histogram
latency_seconds_bucket{le="0.1"} ${n}
latency_seconds_bucket{le="+Inf"} ${2 * n}
latency_seconds_sum ${n / 4}
latency_seconds_count ${2 * n}
# TYPE size summary
size{quantile="0.5"} ${n}
size_sum ${n}
size_count 1
untold{a="ä\\"\\n"} NaN
`,
    ),
  )
  const receiver = await startReceiver()
  const agent = await startCollector(receiver, {
    targets: [{ name: 'shop', address: shop.address, labels: { zone: 'a' } }] as never,
  })
  await until('several scrapes are there', waitMs, () => receiver.of('stock', 'shop').length >= 5)
  const stock = receiver.of('stock', 'shop')
  for (const [i, point] of stock.entries()) {
    assert.equal(point.value, -(i + 1), 'each scrape once, in order')
    assert.deepEqual(point.attributes, { zone: 'a' })
    assert.equal(point.resource['service.instance.id'], shop.address)
    assert.ok(i === 0 || point.timeMs > stock[i - 1]!.timeMs)
  }
  const at = (metric: string) => receiver.of(metric, 'shop')
  const orders = at('orders_total').filter(({ attributes }) => attributes.kind === 'old')
  assert.equal(orders[0]!.kind, 'sum')
  assert.deepEqual(
    orders.slice(0, 3).map(({ value }) => value),
    [1000.5, 2001, 3001.5],
  )
  const [, second] = at('latency_seconds')
  const { count, sum, bucketCounts, explicitBounds } = second!.fields
  assert.deepEqual([count, sum, bucketCounts, explicitBounds], ['4', 0.5, ['2', '2'], [0.1]])
  assert.deepEqual(at('size')[1]!.fields.quantileValues, [{ quantile: 0.5, value: 2 }])
  assert.ok(at('untold').every(({ value, attributes }) => Number.isNaN(value) && attributes.a === 'ä"\n'))
  assert.ok(at('up').every(({ value }) => value === 1))
  assert.equal(at('scrape_samples_scraped')[0]!.value, 11)
  const [target] = await targetsOf(agent)
  assert.deepEqual([target!.health, target!.samples, target!.missed, target!.whole_reads], ['up', 11, 0, 1])
  assert.equal(
    stock.every(({ ended }) => !ended),
    true,
  )
})

test('series, targets and scrapes that end are told to have ended, and come back', async () => {
  let state = 'all'
  const target = await startTarget((request, response, scrape) => {
    if (state === 'down') response.writeHead(503).end()
    else
      page(() => `stays ${scrape}\n${state === 'all' ? `goes{x="1"} ${scrape}\n` : ''}`)(
        request,
        response,
        scrape,
      )
  })
  const receiver = await startReceiver()
  const targets = [{ name: 'shop', address: target.address }] as never
  const agent = await startCollector(receiver, { targets })
  const ended = (metric: string) => receiver.of(metric, 'shop').filter(point => point.ended).length
  await until('a scrape is there', waitMs, () => receiver.of('goes', 'shop').length > 0)
  state = 'some'
  await until('the series that is gone has ended', waitMs, () => ended('goes') === 1)
  assert.equal(ended('stays'), 0)
  state = 'down'
  await until('all series of a failed scrape have ended', waitMs, () => ended('stays') === 1)
  await until('it is down', waitMs, () => receiver.of('up', 'shop').at(-1)?.value === 0)
  const [down] = await targetsOf(agent)
  assert.match(down!.error, /503/)
  state = 'all'
  const before = receiver.of('goes', 'shop').length
  await until('it is back', waitMs, () => receiver.of('goes', 'shop').length > before)
  assert.equal(ended('goes'), 1)
  agent.configure({ collectors: { prometheus: { targets: [] as never } } })
  agent.signal('SIGHUP')
  await until('a target that is gone has ended', waitMs, () => ended('up') === 1 && ended('stays') === 2)
})

test('a reload changes what it names and leaves no gap elsewhere; files of targets are looked at', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-scraping-'))
  open.push({ close: () => rmSync(directory, { recursive: true }) })
  const file = join(directory, 'targets.json')
  const [one, two, three] = await Promise.all([1, 2, 3].map(() => startTarget(page(n => `n ${n}\n`))))
  writeFileSync(file, '[]')
  const receiver = await startReceiver()
  const agent = await startCollector(receiver, {
    targets: [{ name: 'one', address: one!.address }] as never,
    file_sd: [file],
  })
  await until('the first target is scraped', waitMs, () => receiver.of('n', 'one').length > 2)
  const targets = [
    { name: 'one', address: one!.address },
    { name: 'two', address: two!.address },
  ] as never
  agent.configure({ collectors: { prometheus: { targets } } })
  agent.signal('SIGHUP')
  await until('the second target is scraped', waitMs, () => receiver.of('n', 'two').length > 2)
  writeFileSync(file, JSON.stringify([{ targets: [three!.address], labels: { job: 'three' } }]))
  await until('the third target is scraped', waitMs, () => receiver.of('n', 'three').length > 2)
  const values = receiver.of('n', 'one').map(({ value }) => value)
  assert.deepEqual(
    values,
    values.map((_, i) => i + 1),
    'each scrape of the first target once',
  )
})

test('hostile targets are named, and others are not touched', async () => {
  const endless: Answer = (_request, response) => {
    const more = () => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', more)
    }
    response.on('error', () => undefined)
    more()
  }
  const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20), { level: 1 })
  const wide = `a{b="${'x'.repeat(2 ** 21)}"} 1\n`
  const answers: Record<string, Answer> = {
    endless,
    drip: (_request, response) => {
      const timer = setInterval(() => response.write('a'), 20)
      response.once('close', () => clearInterval(timer))
    },
    bomb: (_request, response) => {
      response.setHeader('content-encoding', 'gzip')
      response.end(bomb)
    },
    loop: (_request, response) => response.writeHead(302, { location: '/metrics' }).end(),
    json: (_request, response) => response.end('{"status": "ok"}'),
    control: page(() => '\u0001 1\n'),
    utf8: (_request, response) => response.end(Buffer.from('a{b="\xff"} 1\n', 'latin1')),
    wide: page(() => wide),
    twice: page(() => 'a{b="1"} 1\na{b="1"} 2\n'),
    growing: page(n => Array.from({ length: 3000 }, (_, i) => `grows{id="${n}-${i}"} 1\n`).join('')),
  }
  const good = await startTarget(page(n => `fine ${n}\n`))
  const targets: { name: string; address: string }[] = [{ name: 'good', address: good.address }]
  for (const [name, answer] of Object.entries(answers))
    targets.push({ name, address: (await startTarget(answer)).address })
  const receiver = await startReceiver()
  const agent = await startCollector(
    receiver,
    { targets: targets as never, scrape_interval: '500ms', scrape_timeout: '400ms', body_size_limit: '8Mi' },
    {
      pipeline: {
        export: { batch: { timeout: '50ms' } },
        limits: { cardinality: { default_max_series: 5000 } },
      },
    },
  )
  await until('all were scraped several times', waitMs, async () => {
    const all = await targetsOf(agent)
    return all.length === targets.length && all.every(({ scrapes }) => scrapes >= 4)
  })
  const values = receiver.of('fine', 'good').map(({ value }) => value)
  assert.deepEqual(
    values,
    values.map((_, i) => i + 1),
    'the good one is not touched',
  )
  const byName = new Map((await targetsOf(agent)).map(target => [target.labels.job!, target]))
  const errors = Object.fromEntries([...byName].map(([name, { error }]) => [name, error]))
  const told: Record<string, RegExp> = {
    endless: /larger than|8 ?Mi|8388608|body/,
    drip: /400 ms|timeout|within/,
    bomb: /larger than|times|ratio|8388608/,
    loop: /redirect/,
    json: /line 1/,
    control: /line 1/,
    utf8: /line 1/,
    wide: /line 1/,
  }
  for (const [name, pattern] of Object.entries(told)) assert.match(errors[name]!, pattern, name)
  for (const name of ['good', 'twice', 'growing']) assert.equal(errors[name], '', name)
  const metrics = await agent.metrics()
  assert.ok(metrics.sum('svc_metrics_dropped_total', 'reason="duplicate_series"') > 0)
  assert.ok(
    metrics.sum('svc_metrics_dropped_total', 'reason="series_limit"') > 0 ||
      metrics.sum('svc_metrics_dropped_total', 'reason="cardinality"') > 0,
  )
})

test('a million new series a minute are bounded, and named, and others are not touched', async () => {
  const seconds = process.env.SVC_SOAK === '1' ? 60 : 5
  const perScrape = 16_667
  const bomb = await startTarget(
    page(n => Array.from({ length: perScrape }, (_, i) => `bomb{id="${n}-${i}"} 1\n`).join('')),
  )
  const good = await startTarget(page(n => `fine ${n}\n`))
  const receiver = await startReceiver()
  const agent = await startCollector(receiver, {
    scrape_interval: '1s',
    scrape_timeout: '900ms',
    targets: [
      { name: 'bomb', address: bomb.address },
      { name: 'good', address: good.address },
    ] as never,
  })
  await until('the bomb is scraped', waitMs, () => bomb.scrapes() >= 2)
  const before = memoryOf(agent.pid)
  const first = bomb.scrapes()
  await until('it was scraped for a while', waitMs + seconds * 1500, () => bomb.scrapes() >= first + seconds)
  const values = receiver.of('fine', 'good').map(({ value }) => value)
  assert.deepEqual(
    values,
    values.map((_, i) => i + 1),
    'the good one is not touched',
  )
  const grown = memoryOf(agent.pid) - before
  assert.ok(grown < 256, `${Math.round(grown)} MiB more`)
  const metrics = await agent.metrics()
  assert.ok(metrics.sum('svc_processor_outcomes_total', 'rule="bomb"') > perScrape)
})

/** Anonymous memory, in MiB: what a process of the sources takes beside. */
function memoryOf(pid: number): number {
  const [, kb = ''] = /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return Number(kb) / 1024
}

test('a collector needs no privileges', {
  skip: process.getuid?.() !== 0 && 'only root can be somebody else',
}, async () => {
  const target = await startTarget(page(n => `n ${n}\n`))
  const receiver = await startReceiver()
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    wrapper: [
      'setpriv',
      '--reuid=65534',
      '--regid=65534',
      '--clear-groups',
      '--inh-caps=-all',
      '--no-new-privs',
    ],
    config: {
      mode: 'collector',
      otlp: { protocol: 'http/protobuf' },
      collectors: {
        prometheus: {
          scrape_interval: '200ms',
          scrape_timeout: '150ms',
          targets: [{ name: 'shop', address: target.address }] as never,
        },
      },
    },
  })
  open.push({ close: () => agent.stop() })
  await until('it is scraped', waitMs, () => receiver.of('n', 'shop').length > 2)
})
