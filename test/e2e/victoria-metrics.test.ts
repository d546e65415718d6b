// owns: process
// What collector mode reads from a page is what a receiver that nobody here wrote has afterwards: VictoriaMetrics takes
// it over OTLP and gives each series back under the name and labels of the page.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { afterEach, test } from 'node:test'
import type { TargetsDocument } from '../../src/view/api/types.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { parseExposition } from '../helpers/exposition.ts'
import { call } from '../helpers/http.ts'
import { until } from '../helpers/program.ts'
import { startPrometheus, withoutPrometheus } from '../helpers/prometheus-server.ts'
import { soak } from '../helpers/soak.ts'
import { type StoredSeries, VictoriaMetrics, withoutVictoriaMetrics } from '../helpers/victoria-metrics.ts'

const scrapes = soak ? 100 : 6

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface PageServer {
  readonly address: string
  /** The pages that were asked for, in order. */
  readonly served: string[]
  /** Takes no further connection, and ends those that there are. */
  stop(): Promise<void>
}

/** A target whose n-th page, from 0, is told; from the `last` on it answers nothing but an error. */
async function startTarget(page: (n: number) => string, last: number): Promise<PageServer> {
  const served: string[] = []
  const server = createServer((_request, response) => {
    if (served.length >= last) return void response.writeHead(503).end()
    const text = page(served.length)
    served.push(text)
    response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4' }).end(text)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const stop = async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  open.push(stop)
  return { address: `127.0.0.1:${(server.address() as { port: number }).port}`, served, stop }
}

/** The agent in collector mode with one job of Prometheus' form. */
async function startCollector(storage: VictoriaMetrics, job: object): Promise<AgentProcess> {
  const config = {
    mode: 'collector',
    otlp: { endpoint: storage.otlpUrl, protocol: 'http/protobuf' },
    collectors: {
      prometheus: { scrape_configs: [{ scrape_interval: '3s', scrape_timeout: '3s', ...job }] },
    },
  }
  const agent = await AgentProcess.start({ config: config as unknown as Tree })
  open.push(() => agent.stop())
  return agent
}

/** What a job and a target become in the resource, and so labels of each series there. */
const ofResource = /^(service\.|server\.|url\.)/

/** Name and labels as a page has them, in the order of their names. */
function keyOf({ metric }: StoredSeries): string {
  const { __name__: name, ...labels } = metric
  const told = Object.entries(labels).filter(([label]) => !ofResource.test(label))
  return `${name}${JSON.stringify(told.sort())}`
}

/** The storage keeps 64-bit integers with a decimal exponent: the last of 17 digits may be another. */
function isSame(stored: number | string | null | undefined, told: number): boolean {
  if (stored === undefined || stored === null) return false
  const value = Number(stored)
  return value === told || Math.abs(value - told) <= Math.abs(told) * 1e-14
}

/** Values of each series of pages, by its key. That a value is not known is nothing that the storage keeps. */
function valuesOf(pages: readonly string[]): Map<string, number[]> {
  const values = new Map<string, number[]>()
  for (const page of pages)
    for (const { samples } of parseExposition(page, 'text').families.values())
      for (const { name, labels, value } of samples) {
        if (Number.isNaN(value)) continue
        // A label without a value is none.
        const told = Object.entries(labels).filter(([, value]) => value !== '')
        const key = `${name}${JSON.stringify(told.sort())}`
        values.set(key, [...(values.get(key) ?? []), value])
      }
  return values
}

function head(name: string, type: string): string {
  return `# HELP ${name} What it is.\n# TYPE ${name} ${type}\n`
}

function page(n: number): string {
  const histogram = (path: string, factor: number) => {
    const counts = [n * factor, n * factor * 3, n * factor * 3, n * factor * 4]
    const bounds = ['0.005', '0.25', '10', '+Inf']
    const buckets = bounds.map((le, i) => `took_seconds_bucket{path="${path}",le="${le}"} ${counts[i]}\n`)
    return `${buckets.join('')}took_seconds_sum{path="${path}"} ${n * 0.125}\ntook_seconds_count{path="${path}"} ${counts[3]}\n`
  }
  // A series that is new on the fourth page, and one that is only on the first three.
  const passing = n < 3 ? `depth{queue="first"} ${n}\n` : `depth{queue="later"} ${-n / 4}\n`
  return (
    `${head('taken_total', 'counter')}taken_total{code="200",text="a \\"b\\" \\\\ c\\nd é"} ${1e6 + n * 1.5}\n` +
    `taken_total{code="500",text=""} ${n}e+06\n` +
    `${head('depth', 'gauge')}depth{queue="-"} ${n % 2 ? '-' : ''}1.25e-7\n${passing}` +
    `depth{queue="inf"} ${n % 2 ? '+' : '-'}Inf\n` +
    `${head('took_seconds', 'histogram')}${histogram('/', 1)}${histogram('/a', 1000)}` +
    `${head('size_bytes', 'summary')}size_bytes{quantile="0.5"} ${n + 0.5}\n` +
    `size_bytes{quantile="0.99"} ${n * 100}\nsize_bytes_sum ${n * 1e9}\nsize_bytes_count ${n}\n` +
    `${head('untold', 'untyped')}untold{x="1"} ${n / 8}\n`
  )
}

/** Holds what is stored against what a target served, and returns it. */
async function storedAs(storage: VictoriaMetrics, target: PageServer, job: string): Promise<StoredSeries[]> {
  const want = valuesOf(target.served)
  let stored = new Map<string, StoredSeries>()
  // The end of a series is a value that is none.
  const numbersOf = (key: string) => stored.get(key)?.values.filter(value => value !== null) ?? []
  const missing = () => [...want].filter(([key, values]) => numbersOf(key).length < values.length)
  await until(
    () => `${want.size} series are there whole, without ${missing().join('\n')}`,
    20_000,
    async () => {
      stored = new Map((await storage.series('{__name__!=""}')).map(series => [keyOf(series), series]))
      return missing().length === 0
    },
  )
  const wrong: string[] = []
  for (const [key, values] of want) {
    const { metric, values: found } = stored.get(key)!
    const numbers = numbersOf(key)
    if (numbers.length !== values.length || !numbers.every((value, i) => isSame(value, values[i]!)))
      wrong.push(`${key}: ${JSON.stringify(found)}, and it was ${JSON.stringify(values)}`)
    assert.equal(metric['service.name'], job, key)
    assert.equal(metric['service.instance.id'], target.address, key)
  }
  assert.deepEqual(wrong, [])
  return [...stored.values()]
}

/** Scrapes that are over. */
async function scrapesOf(agent: AgentProcess): Promise<number> {
  const { jobs } = await agent.document<TargetsDocument>('/status/targets')
  return jobs.flatMap(({ targets }) => targets)[0]?.scrapes ?? 0
}

/** Runs a collector until a target has served all of its pages. */
async function collect(storage: VictoriaMetrics, job: string, page: (n: number) => string, pages: number) {
  const target = await startTarget(page, pages)
  const agent = await startCollector(storage, {
    job_name: job,
    static_configs: [{ targets: [target.address] }],
  })
  await until(
    () => `${pages} pages were asked for, not ${target.served.length}:\n${agent.logText()}`,
    pages * 10_000 + 30_000,
    // One that was served is not yet read.
    async () => target.served.length === pages && (await scrapesOf(agent)) >= pages,
  )
  // Its end sends what waits.
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
  return storedAs(storage, target, job)
}

async function startStorage(): Promise<VictoriaMetrics> {
  const storage = await VictoriaMetrics.start()
  open.push(() => storage.close())
  return storage
}

test('each value of each page is given back', { skip: withoutVictoriaMetrics }, async () => {
  const stored = await collect(await startStorage(), 'shop', page, scrapes)
  const of = (text: string) => stored.find(each => keyOf(each).includes(text))!
  assert.equal(of('depth[["queue","first"]]').values.at(-1), null, 'a series that is gone ends')
  assert.equal(of('depth[["queue","-"]]').values.at(-1), null, 'the end of the target ends its series')
  assert.equal(of('up[]').values[0], 1)
  assert.equal(of('scrape_samples_scraped[]').values[0], valuesOf([page(0)]).size)
})

test('the page of a real Prometheus is given back', {
  skip: withoutVictoriaMetrics || withoutPrometheus,
}, async () => {
  const prometheus = await startPrometheus({})
  const { body } = await call(prometheus.port, '/metrics').finally(() => prometheus.close())
  await collect(await startStorage(), 'prometheus', () => body.toString(), 3)
})
