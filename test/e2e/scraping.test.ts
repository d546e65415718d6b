// owns: process
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { TargetsDocument } from '../../src/view/api/types.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { MetricReceiver } from '../helpers/metric-receiver.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

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
    // With its own heap: V8 lets a larger one grow before it collects.
    shipped: true,
    endpoint: receiver.endpoint,
    config: {
      mode: 'collector',
      otlp: { protocol: 'http/protobuf' },
      pipeline: { export: { batch: { timeout: '50ms' } } },
      collectors: { prometheus: { scrape_interval: '1s', scrape_timeout: '1s', ...prometheus } },
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

/**
 * Of a series whose value is the number of the scrape each is there once, in the order of their times. One is missing,
 * and the series told to have ended, only where a scrape failed, which a host that stands still for a moment brings about.
 */
function assertCounted(receiver: MetricReceiver, metric: string, job: string): void {
  const points = receiver.of(metric, job).toSorted((a, b) => a.timeMs - b.timeMs)
  const values = points.filter(({ ended }) => !ended).map(({ value }) => Math.abs(value!))
  const failed = receiver.of('up', job).filter(({ value, ended }) => !ended && value === 0).length
  const text = `${metric} of ${job}: ${values.join()}; ${failed} scrapes failed`
  assert.ok(failed <= 2, text)
  assert.ok(
    values.every((value, i) => i === 0 || value > values[i - 1]!),
    text,
  )
  assert.ok(values.at(-1)! - values.length <= failed, text)
  assert.ok(points.length - values.length <= failed, `${text}, and it was told to have ended`)
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
  assertCounted(receiver, 'stock', 'shop')
  const scrapes = receiver.of('stock', 'shop').filter(({ ended }) => !ended)
  for (const { attributes, resource } of scrapes) {
    assert.deepEqual(attributes, { zone: 'a' })
    assert.equal(resource['service.instance.id'], shop.address)
  }
  for (const { value, timeMs } of scrapes.slice(0, 3)) {
    const n = -value!
    const at = (metric: string) => receiver.of(metric, 'shop').filter(point => point.timeMs === timeMs)
    const orders = at('orders_total').map(({ kind, value, attributes }) => [kind, value, attributes.kind])
    assert.deepEqual(orders, [
      ['sum', n, 'new'],
      ['sum', n * 1000.5, 'old'],
    ])
    const [latency] = at('latency_seconds')
    const { count, sum, bucketCounts, explicitBounds } = latency!.fields
    const want = [`${2 * n}`, n / 4, [`${n}`, `${n}`], [0.1]]
    assert.deepEqual([count, sum, bucketCounts, explicitBounds], want)
    assert.deepEqual(at('size')[0]!.fields.quantileValues, [{ quantile: 0.5, value: n }])
    assert.ok(at('untold').every(({ value, attributes }) => Number.isNaN(value) && attributes.a === 'ä"\n'))
    assert.equal(at('up')[0]!.value, 1)
    assert.equal(at('scrape_samples_scraped')[0]!.value, 11)
  }
  await until('it is told to be up', waitMs, async () => (await targetsOf(agent))[0]!.health === 'up')
  const [target] = await targetsOf(agent)
  assert.deepEqual([target!.samples, target!.series_changes], [11, 1])
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
  const last = (metric: string) => receiver.of(metric, 'shop').at(-1)
  const ends = (metric: string) => receiver.of(metric, 'shop').filter(({ ended }) => ended).length
  await until('a scrape is there', waitMs, () => last('goes')?.ended === false)
  state = 'some'
  await until('only the series that is gone has ended', waitMs, () => {
    return last('goes')!.ended && !last('stays')!.ended
  })
  const failed = receiver.of('up', 'shop').filter(({ value }) => value === 0).length
  assert.ok(ends('stays') <= failed, `${ends('stays')} ends, and ${failed} scrapes failed`)
  const before = ends('goes')
  state = 'down'
  await until('all series of a failed scrape have ended', waitMs, () => last('stays')!.ended)
  await until('it is down', waitMs, () => last('up')!.value === 0)
  await until('it says why', waitMs, async () => /503/.test((await targetsOf(agent))[0]!.error))
  assert.equal(ends('goes'), before, 'what has ended does not end again')
  state = 'all'
  await until('it is back', waitMs, () => !last('goes')!.ended && !last('stays')!.ended)
  agent.configure({ collectors: { prometheus: { targets: [] as never } } })
  agent.signal('SIGHUP')
  await until('a target that is gone has ended', waitMs, () => last('up')!.ended && last('stays')!.ended)
  assert.equal(ends('up'), 1)
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
  assertCounted(receiver, 'n', 'one')
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
  // Each is a family of its own: some KB in memory for a few bytes.
  const families = Array.from({ length: 300_000 }, (_, i) => `family_${i} 1\n`).join('')
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
    families: page(() => families),
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
    { targets: targets as never, scrape_interval: '2s', scrape_timeout: '2s', body_size_limit: '8Mi' },
    {
      pipeline: {
        export: { batch: { timeout: '50ms' } },
        limits: { cardinality: { default_max_series: 5000 } },
      },
    },
  )
  const told: Record<string, RegExp> = {
    good: /^$/,
    twice: /^$/,
    growing: /^$/,
    endless: /larger than|8 ?Mi|8388608|body/,
    drip: /after 2000 ms/,
    bomb: /larger than|times|ratio|8388608/,
    loop: /redirect/,
    json: /line 1/,
    control: /line 1/,
    utf8: /line 1/,
    wide: /line 1/,
    families: /no memory left for its series/,
  }
  let all: Awaited<ReturnType<typeof targetsOf>> = []
  // A busy host may cut one scrape or another short, and then another fault is named.
  const others = () => all.filter(({ labels, error }) => !told[labels.job!]!.test(error))
  await until(
    () => `each was scraped several times, and its fault is named: ${JSON.stringify(others())}`,
    3 * waitMs,
    async () => {
      all = await targetsOf(agent)
      const isScraped = all.length === targets.length && all.every(({ scrapes }) => scrapes >= 3)
      return isScraped && others().length === 0
    },
  )
  assertCounted(receiver, 'fine', 'good')
  await until('what is too much is counted', waitMs, async () => {
    const metrics = await agent.metrics()
    const dropped = (reason: string) => metrics.sum('svc_metrics_dropped_total', `reason="${reason}"`)
    return dropped('duplicate_series') > 0 && dropped('series_limit') + dropped('cardinality') > 0
  })
})

test('a million new series a minute are bounded, and named, and others are not touched', async () => {
  const scrapes = soak ? 30 : 4
  const perScrape = 33_334
  const bomb = await startTarget(
    page(n => Array.from({ length: perScrape }, (_, i) => `bomb{id="${n}-${i}"} 1\n`).join('')),
  )
  const good = await startTarget(page(n => `fine ${n}\n`))
  const receiver = await startReceiver()
  const agent = await startCollector(receiver, {
    scrape_interval: '2s',
    scrape_timeout: '2s',
    targets: [
      { name: 'bomb', address: bomb.address },
      { name: 'good', address: good.address },
    ] as never,
  })
  await until('the bomb is scraped', waitMs, () => bomb.scrapes() >= 2)
  const before = memoryOf(agent.pid)
  const first = bomb.scrapes()
  await until('it was scraped for a while', waitMs + scrapes * 3000, () => bomb.scrapes() >= first + scrapes)
  assertCounted(receiver, 'fine', 'good')
  const grown = memoryOf(agent.pid) - before
  assert.ok(grown < 48, `${Math.round(grown)} MiB more`)
  const metrics = await agent.metrics()
  assert.ok(metrics.sum('svc_processor_outcomes_total', 'rule="bomb"') > perScrape)
})

/** Anonymous memory, in MiB. */
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
