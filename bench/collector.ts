// Collector mode beside Debian's vmagent and Prometheus' agent: the same changing pages, the same sink, one after the
// other on CPU 0 while targets and sink are on CPU 1. CPU for a million samples, memory, bytes on the wire, scrapes that
// were missed. svc runs dist/svc.cjs through bin/svc, as users do. Options: --rows NAME,..., --scrapers NAME,...,
// --rounds N, --warm-up SECONDS, --window SECONDS, --short (windows of 10 seconds, one round).
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { MetricSink } from '../test/helpers/metric-sink.ts'
import { PageGenerator } from '../test/helpers/page-generator.ts'
import { BenchHost, cpuSeconds, median } from './lib/bench-host.ts'
import { type RunningScraper, type Scraper, scrapers } from './lib/scrapers.ts'

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string' },
    scrapers: { type: 'string' },
    rounds: { type: 'string' },
    'warm-up': { type: 'string' },
    window: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds ?? (options.short ? 1 : 3))
const warmUpSeconds = Number(options['warm-up'] ?? (options.short ? 10 : 20))
const windowSeconds = Number(options.window ?? (options.short ? 10 : 40))

interface Row {
  readonly name: string
  readonly targets: number
  readonly series: number
  readonly intervalMs: number
  /** What svc is held to. */
  readonly bar: string
}

const rows: readonly Row[] = [
  { name: '10x10k@1s', targets: 10, series: 10_000, intervalMs: 1000, bar: '0.8 CPU-s, below vmagent' },
  { name: '100x1k@5s', targets: 100, series: 1000, intervalMs: 5000, bar: '1.0 CPU-s, below vmagent' },
  { name: '30x10k@1s', targets: 30, series: 10_000, intervalMs: 1000, bar: 'no missed scrape' },
  { name: '1x100k@5s', targets: 1, series: 100_000, intervalMs: 5000, bar: '180 MB resident' },
  { name: 'idle', targets: 0, series: 0, intervalMs: 1000, bar: '64 MB resident' },
]

/** What one scraper did in one window. */
interface Result {
  readonly cpuSeconds: number
  readonly samples: number
  readonly missed: number
  readonly broken: number
  readonly wireBytes: number
  /** Of the samples served, that reached the sink; NaN where none were. */
  readonly delivered: number
  /** MB, the last and the largest that was seen. */
  readonly resident: number
  readonly peak: number
  readonly anonymous: number
}

/** MB, summed over its mappings at this moment. */
function memoryNow(pid: number): { readonly resident: number; readonly anonymous: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1]) / 1024
  return { resident: of('Rss'), anonymous: of('Anonymous') }
}

/** The largest that it ever was, in MB. */
function peakOf(pid: number): number {
  return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024
}

function pinned(cpu: number): readonly string[] {
  return availableParallelism() > 1 ? ['taskset', '-c', String(cpu)] : []
}

/** Moves a process that runs, with all its threads. */
function pin(pid: number, cpu: number): void {
  if (availableParallelism() > 1) spawnSync('taskset', ['-acp', String(cpu), String(pid)])
}

async function observe(
  running: RunningScraper,
  generator: PageGenerator | undefined,
  sink: MetricSink,
): Promise<Result> {
  const { pid } = running
  await sleep(warmUpSeconds * 1000)
  await generator?.reset()
  await sink.reset()
  const sentBefore = await running.sent()
  const cpuBefore = cpuSeconds(pid)
  await sleep(windowSeconds * 1000)
  if (running.child.exitCode !== null) throw new Error(`${running.child.spawnargs.join(' ')} has ended`)
  const cpu = cpuSeconds(pid) - cpuBefore
  const report = await generator?.report()
  const counts = await sink.counts()
  const sentAfter = await running.sent()
  const samples = report?.samples ?? 0
  const sent = sentAfter === undefined ? counts.samples : sentAfter - (sentBefore ?? 0)
  return {
    cpuSeconds: cpu,
    samples,
    missed: report?.missed ?? 0,
    broken: report?.broken ?? 0,
    wireBytes: counts.bytes,
    delivered: sent / samples,
    peak: peakOf(pid),
    ...memoryNow(pid),
  }
}

async function measure(row: Row, scraper: Scraper): Promise<Result> {
  const host = new BenchHost()
  const sink = await MetricSink.start('shop_')
  const generator = row.targets > 0 ? await PageGenerator.start(row) : undefined
  try {
    for (const { pid } of [sink, ...(generator ? [generator] : [])]) pin(pid, 1)
    const { intervalMs } = row
    const addresses = generator?.addresses ?? []
    const running = await scraper.start(host, { addresses, intervalMs, sink, wrapper: pinned(0) })
    return await observe(running, generator, sink)
  } finally {
    await host.close()
    await generator?.close()
    await sink.close()
  }
}

function textOf(results: readonly Result[]): string {
  const middle = (of: (result: Result) => number, digits: number) => median(results.map(of)).toFixed(digits)
  const memory =
    `${middle(result => result.resident, 0)} MB resident, ${middle(result => result.peak, 0)} MB at most, ` +
    `${middle(result => result.anonymous, 0)} MB anonymous`
  const sum = (of: (result: Result) => number) => results.reduce((all, result) => all + of(result), 0)
  if (sum(result => result.samples) === 0)
    return `${middle(result => (result.cpuSeconds / windowSeconds) * 1000, 1)} ms of CPU a second, ${memory}`
  const broken = sum(result => result.broken)
  return (
    `${middle(result => (result.cpuSeconds / result.samples) * 1e6, 3)} CPU-s for a million samples, ` +
    `${middle(result => (result.cpuSeconds / windowSeconds) * 100, 0)} % of a core, ` +
    `${sum(result => result.missed)} scrapes missed, ${broken > 0 ? `${broken} broken off, ` : ''}` +
    `${middle(result => result.delivered * 100, 0)} % delivered, ` +
    `${middle(result => result.wireBytes / result.samples, 2)} B/sample on the wire, ${memory}`
  )
}

function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): T[] {
  const wanted = names?.split(',')
  const unknown = wanted?.find(name => !all.some(each => each.name === name))
  if (unknown !== undefined)
    throw new Error(`${unknown} is none of: ${all.map(({ name }) => name).join(', ')}`)
  return all.filter(({ name }) => wanted?.includes(name) ?? true)
}

async function main(): Promise<void> {
  const compared = chosen(scrapers, options.scrapers)
  for (const { name, without } of compared)
    if (without !== false) console.log(`${name} is left out: ${without}`)
  pin(process.pid, 1)
  console.log(
    `${rounds} rounds, ${warmUpSeconds} s of warm-up, ${windowSeconds} s of window; load before: ${loadavg()[0]!.toFixed(2)}`,
  )
  for (const row of chosen(rows, options.rows)) {
    const results = new Map<Scraper, Result[]>()
    for (let round = 0; round < rounds; round++)
      for (const scraper of compared)
        if (scraper.without === false) {
          const result = await measure(row, scraper)
          results.set(scraper, [...(results.get(scraper) ?? []), result])
          if (rounds > 1) console.log(`  ${row.name} ${round + 1} ${scraper.name}: ${textOf([result])}`)
        }
    for (const [scraper, found] of results)
      console.log(
        `${row.name} ${scraper.name}: ${textOf(found)}${scraper.name === 'svc' ? ` (bar ${row.bar})` : ''}`,
      )
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
