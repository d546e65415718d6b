// The programs that the benchmark of collector mode compares: each scrapes the same targets and sends what it reads to
// the same sink, alone on one CPU.
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MetricSink } from '../../test/helpers/metric-sink.ts'
import { freePort, until } from '../../test/helpers/program.ts'
import { prometheusProgram, withoutPrometheus } from '../../test/helpers/prometheus-server.ts'
import { vmagentArguments, vmagentProgram, withoutVmagent } from '../../test/helpers/vmagent.ts'
import { type BenchHost, fetchText, statusOf } from './bench-host.ts'

export interface ScrapeOrder {
  /** `host:port` of each target. */
  readonly addresses: readonly string[]
  readonly intervalMs: number
  readonly sink: MetricSink
  /** Before the command line: what pins it to a CPU. */
  readonly wrapper: readonly string[]
}

export interface RunningScraper {
  readonly child: ChildProcess
  readonly pid: number
  /** Samples that it says it sent since its start; undefined where the sink counts them. */
  sent(): Promise<number | undefined>
}

export interface Scraper {
  readonly name: string
  /** Why it cannot run here; false where it can. */
  readonly without: string | false
  start(host: BenchHost, order: ScrapeOrder): Promise<RunningScraper>
}

/** A job of Prometheus' form, which all three take. */
function scrapeConfigs({ addresses, intervalMs }: ScrapeOrder): string {
  const targets = addresses.map(address => `"${address}"`).join(', ')
  return (
    `scrape_configs:\n- job_name: bench\n  scrape_interval: ${intervalMs}ms\n  scrape_timeout: ${intervalMs}ms\n` +
    `  static_configs:\n  - targets: [${targets}]\n`
  )
}

let folders = 0

function emptyFolder(host: BenchHost, name: string): string {
  const folder = join(host.directory, `${name}-${folders++}`)
  mkdirSync(folder)
  return folder
}

/** Starts a program with a page of its own metrics, and waits until it answers there. */
async function startServer(
  host: BenchHost,
  command: readonly string[],
  port: number,
  paths: { readonly ready: string; readonly sent: string },
): Promise<RunningScraper> {
  const child = host.start(command[0]!, command.slice(1))
  const base = `http://127.0.0.1:${port}`
  await until(`${command.at(-1)} is ready`, 60_000, async () => (await statusOf(base + paths.ready)) === 200)
  return {
    child,
    pid: child.pid!,
    sent: async () => sumOf((await fetchText(`${base}/metrics`)).text, paths.sent),
  }
}

/** The sum of all series of a name. */
function sumOf(page: string, name: string): number {
  let sum = 0
  for (const line of page.split('\n'))
    if (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) sum += Number(line.split(' ').at(-1))
  return sum
}

const vmagent: Scraper = {
  name: 'vmagent',
  without: withoutVmagent,
  async start(host, order) {
    const directory = emptyFolder(host, 'vmagent')
    const config = join(directory, 'config.yml')
    writeFileSync(config, scrapeConfigs(order))
    const port = await freePort()
    const remoteWrite = `${order.sink.httpUrl}/api/v1/write`
    const own = vmagentArguments({ config, directory: join(directory, 'data'), port, remoteWrite })
    return startServer(host, [...order.wrapper, vmagentProgram, ...own], port, {
      ready: '/health',
      sent: 'vmagent_remotewrite_block_size_rows_sum',
    })
  },
}

const prometheus: Scraper = {
  name: 'prometheus',
  without: withoutPrometheus,
  async start(host, order) {
    const directory = emptyFolder(host, 'prometheus')
    const config = join(directory, 'config.yml')
    const remoteWrite = `remote_write:\n- url: ${order.sink.httpUrl}/api/v1/write\n`
    writeFileSync(config, scrapeConfigs(order) + remoteWrite)
    const port = await freePort()
    const own = [
      '--enable-feature=agent',
      `--config.file=${config}`,
      `--storage.agent.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    return startServer(host, [...order.wrapper, prometheusProgram, ...own], port, {
      ready: '/-/ready',
      sent: 'prometheus_remote_storage_samples_total',
    })
  },
}

/** As it would run where personal data may be in labels: limits, all rules of redaction, the queue on disk, gzip. */
const svc: Scraper = {
  name: 'svc',
  without: false,
  async start(host, order) {
    const types = ['email', 'phone', 'ssn', 'credit_card', 'ipv4', 'iban', 'jwt', 'api_key']
    const rules = types.map(type => `{name: ${type}, type: ${type}}`).join(', ')
    const directory = join(emptyFolder(host, 'svc'), 'queue')
    const series = '{default_max_series: 1000000, global_max_series: 1000000}'
    const configs = scrapeConfigs(order).replaceAll(/^/gm, '    ').trimEnd()
    const config =
      `mode: collector\npipeline:\n  limits: {cardinality: ${series}}\n` +
      `  pii_redaction: {enabled: true, rules: [${rules}]}\n` +
      `  export: {queue: {enabled: true, directory: "${directory}"}}\n` +
      `collectors:\n  prometheus:\n${order.addresses.length === 0 ? '    enabled: true' : configs}\n`
    const { grpcEndpoint } = order.sink
    const { child, pid } = await host.startAgent(grpcEndpoint, { config, wrapper: order.wrapper })
    return { child, pid, sent: async () => undefined }
  },
}

export const scrapers: readonly Scraper[] = [svc, vmagent, prometheus]
