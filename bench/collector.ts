// Collector mode beside Debian's vmagent and Prometheus' agent: the same changing pages, the same sink, one after the
// other on CPU 0 while targets and sink are on CPU 1. CPU for a million samples, memory, bytes on the wire, scrapes that
// were missed. svc runs dist/svc.cjs through bin/svc, as users do. Options: --rows NAME,..., --scrapers NAME,...,
// --rounds N, --warm-up SECONDS, --window SECONDS (instead of what each row has), --short (10 seconds of each, one round).
// at most: 30 min
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { MetricSink } from '../test/helpers/metric-sink.ts'
import { PageGenerator } from '../test/helpers/page-generator.ts'
import { BenchHost, cpuSeconds } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'
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

interface Row {
  readonly name: string
  readonly targets: number
  readonly series: number
  readonly intervalMs: number
  /** What svc is held to. */
  readonly bar: string
  readonly rounds: number
  /** Of each other than svc. */
  readonly peerRounds: number
  readonly warmUpSeconds: number
  readonly windowSeconds: number
}

const everySecond = { intervalMs: 1000, warmUpSeconds: 8, windowSeconds: 12 }
/** V8 compiles late what runs every 5 seconds. */
const every5Seconds = { intervalMs: 5000, warmUpSeconds: 20, windowSeconds: 15 }
/** More where the CPU of scrapers is compared. Fewer of the others, which do not change with our sources. */
const compared = { rounds: 5, peerRounds: 2 }
const alone = { rounds: 3, peerRounds: 1 }

function planRow(
  name: string,
  [targets, series]: readonly [number, number],
  pace: typeof everySecond,
  rounds: typeof compared,
  bar: string,
): Row {
  return { name, targets, series, bar, ...pace, ...rounds }
}

const planned: readonly Row[] = [
  planRow('10x10k@1s', [10, 10_000], everySecond, compared, '0.8 CPU-s, below vmagent'),
  planRow('100x1k@5s', [100, 1000], every5Seconds, compared, '1.0 CPU-s, below vmagent'),
  planRow('30x10k@1s', [30, 10_000], everySecond, alone, 'no missed scrape'),
  planRow('1x100k@5s', [1, 100_000], every5Seconds, alone, '180 MB resident'),
  planRow('idle', [0, 0], everySecond, alone, '64 MB resident'),
]

const rows = planned.map(row => ({
  ...row,
  rounds: Number(options.rounds ?? (options.short ? 1 : row.rounds)),
  peerRounds: Number(options.rounds ?? (options.short ? 1 : row.peerRounds)),
  warmUpSeconds: Number(options['warm-up'] ?? (options.short ? 10 : row.warmUpSeconds)),
  windowSeconds: Number(options.window ?? (options.short ? 10 : row.windowSeconds)),
}))

/** What one scraper did in one window. */
interface Result {
  readonly cpuSeconds: number
  readonly samples: number
  readonly missed: number
  readonly broken: number
  readonly wireBytes: number
  /** Of the samples served, that reached the sink; NaN where none were. */
  readonly delivered: number
  /** MiB, the last and the largest that was seen. */
  readonly resident: number
  readonly peak: number
  readonly anonymous: number
}

/** MiB, summed over its mappings at this moment. */
function memoryNow(pid: number): { readonly resident: number; readonly anonymous: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1]) / 1024
  return { resident: of('Rss'), anonymous: of('Anonymous') }
}

/** The largest that it ever was, in MiB. */
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
  { warmUpSeconds, windowSeconds }: Row,
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
    return await observe(row, running, generator, sink)
  } finally {
    await host.close()
    await generator?.close()
    await sink.close()
  }
}

/** What is reported of a scraper. */
interface Column {
  readonly suffix: string
  readonly unit: string
  readonly of?: string
  readonly better?: 'more'
  /** Whether the rounds are added. */
  readonly sum?: true
  readonly value: (result: Result, row: Row) => number
}

const cpuShare = (result: Result, row: Row) => result.cpuSeconds / row.windowSeconds
const inAll = { unit: '{scrape}', of: 'in all rounds', sum: true } as const
const memory: readonly Column[] = [
  { suffix: 'rss_mib', unit: 'MiB', value: ({ resident }) => resident },
  { suffix: 'most_rss_mib', unit: 'MiB', value: ({ peak }) => peak },
  { suffix: 'anonymous_mib', unit: 'MiB', value: ({ anonymous }) => anonymous },
]
const idle: readonly Column[] = [
  { suffix: 'cpu_ms_per_s', unit: 'ms/s', value: (result, row) => cpuShare(result, row) * 1000 },
  ...memory,
]
const busy: readonly Column[] = [
  {
    suffix: 'cpu_s_per_million',
    unit: 's',
    of: 'samples',
    value: ({ cpuSeconds, samples }) => (cpuSeconds / samples) * 1e6,
  },
  {
    suffix: 'cpu_percent',
    unit: '%',
    of: 'of one core',
    value: (result, row) => cpuShare(result, row) * 100,
  },
  { suffix: 'missed_scrapes', ...inAll, value: ({ missed }) => missed },
  { suffix: 'broken_scrapes', ...inAll, value: ({ broken }) => broken },
  { suffix: 'delivered_percent', unit: '%', better: 'more', value: ({ delivered }) => delivered * 100 },
  { suffix: 'wire_bytes_per_sample', unit: 'By', value: ({ wireBytes, samples }) => wireBytes / samples },
  ...memory,
]

function reportAll(row: Row, scraper: Scraper, results: readonly Result[]): void {
  const of = `collector.${row.name.replace('@', '_')}.${scraper.name}`
  if (scraper.name === 'svc') console.log(`${row.name}: svc is held to ${row.bar}`)
  for (const { suffix, unit, of: per, better = 'less', sum, value } of row.targets === 0 ? idle : busy) {
    const all = results.map(result => value(result, row))
    report(`${of}.${suffix}`, sum ? all.reduce((a, b) => a + b, 0) : all, unit, better, per)
  }
}

function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): T[] {
  const wanted = names?.split(',')
  const unknown = wanted?.find(name => !all.some(each => each.name === name))
  if (unknown !== undefined)
    throw new Error(`${unknown} is none of: ${all.map(({ name }) => name).join(', ')}`)
  return all.filter(({ name }) => wanted?.includes(name) ?? true)
}

async function main(): Promise<void> {
  const wanted = chosen(scrapers, options.scrapers)
  for (const { name, without } of wanted)
    if (without !== false) console.log(`${name} is left out: ${without}`)
  pin(process.pid, 1)
  console.log(`load before: ${loadavg()[0]!.toFixed(2)}`)
  for (const row of chosen(rows, options.rows)) {
    const results = new Map<Scraper, Result[]>()
    console.log(
      `${row.name}: ${row.rounds} rounds of svc, ${row.warmUpSeconds} s of warm-up, ${row.windowSeconds} s of window`,
    )
    for (let round = 0; round < row.rounds; round++)
      for (const scraper of wanted)
        if (scraper.without === false && round < (scraper.name === 'svc' ? row.rounds : row.peerRounds))
          results.set(scraper, [...(results.get(scraper) ?? []), await measure(row, scraper)])
    for (const [scraper, found] of results) reportAll(row, scraper, found)
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
