// The live page: how soon it shows something, what an open page costs the agent, how smoothly a large profile moves, what
// the page weighs, and what its window adds to a span. Runs dist/svc.cjs through bin/svc, as users do, and chromium.
// Options: --starts N, --seconds N (of each look at the cost), --rounds N, --pages NAME,NAME, --frames N,
// --part NAME (only one of start, cost, profile, weight, window).
// at most: 20 min
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import type { MapLine, OverviewLine, TracesLine } from '../src/view/api/ui/documents.ts'
import { pageIds } from '../src/view/api/ui/pages.ts'
import { LiveBrowser } from '../test/helpers/browser.ts'
import { startLiveShop } from '../test/helpers/live-shop.ts'
import { freePort, until } from '../test/helpers/program.ts'
import { runtimeFlags } from '../test/helpers/runtime-flags.ts'
import { startRedis } from '../test/helpers/servers/redis.ts'
import { pageWeights } from '../tools/page-weights.ts'
import { type Agent, BenchHost, cpuSeconds, fetchText, statusOf } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'
import { largeFlame, largeProfiles } from './lib/large-profile.ts'

const { values: options } = parseArgs({
  options: {
    starts: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    pages: { type: 'string', default: pageIds.join(',') },
    frames: { type: 'string', default: '100000' },
    part: { type: 'string' },
  },
})
const seconds = Number(options.seconds)
const host = new BenchHost()
const patienceMs = 60_000

/** All of the defaults but what other programs of the host could meet: ports and folders are its own. */
async function ownPlaces(log = ''): Promise<string> {
  const at = (name: string) => join(host.directory, name)
  const logs = `{container_logs: false, paths: [${log === '' ? '' : `"${log}"`}], position_file: "${at('positions')}"}`
  return (
    `agent:\n  nodeexporter: {listen_address: "127.0.0.1:${await freePort()}"}\n  logs: ${logs}\n  discovery: {enabled: false}\n` +
    `pipeline: {export: {queue: {directory: "${at('queue')}"}}}\n`
  )
}

/** Lines of a document that goes on, until `take` has enough. Rejects when the document ends before. */
async function follow<T>(url: string, take: (line: T) => boolean): Promise<void> {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { agent: false }, resolve).on('error', reject),
  )
  if (response.statusCode !== 200) throw new Error(`${url} answers ${response.statusCode}`)
  for await (const line of createInterface(response)) {
    if (!take(JSON.parse(line) as T)) continue
    response.destroy()
    return
  }
  throw new Error(`${url} ended`)
}

/** The last line of a document as it is now. */
async function document<T>(url: string): Promise<T | undefined> {
  const { status, text } = await fetchText(url)
  return status === 200 ? (JSON.parse(text.trimEnd().split('\n').at(-1)!) as T) : undefined
}

/** Starts a program and asks until what it did is seen; milliseconds that both took. */
async function waited(
  command: string,
  args: readonly string[],
  isSeen: () => Promise<boolean>,
): Promise<number> {
  const began = performance.now()
  const child = host.start(command, args)
  await until(`what ${command} did is seen`, patienceMs, isSeen)
  const took = performance.now() - began
  await host.end(child)
  return took
}

/** When values of the CPU were told, by whatever line came first. */
function firstValues(base: string): Promise<void> {
  let cpu: readonly number[] = []
  return follow<OverviewLine>(`${base}/ui/api/overview?follow=1&seconds=300`, line => {
    if (line.kind === 'tick') return cpu.some(i => typeof line.values[i] === 'number')
    cpu = line.series.flatMap(({ chart }, i) => (chart === 'cpu' ? [i] : []))
    return line.series.some(({ chart, values }) => chart === 'cpu' && values.some(value => value !== null))
  })
}

/** The chart of the CPU is there, with values in its legend. */
const drawn = `[...document.querySelectorAll('figure')].some(figure => figure.querySelector('canvas') !== null &&
  /CPU/.test(figure.querySelector('h2').textContent) &&
  [...figure.querySelectorAll('.legend b')].some(value => /\\d/.test(value.textContent)))`

/** What they say, and what it is held to. */
const startFigures = {
  ready_ms: 'to /ready',
  first_values_ms: 'to the first values of the CPU over HTTP, bound 3 s',
  first_chart_ms: 'to the first chart of the page with values, bound 3 s',
  first_paint_ms: 'from asking for the page to its first paint',
  span_ms: 'from curl to its span in /ui/api/traces, bound 2 s',
  edge_ms: 'from redis-cli to its edge in /ui/api/map, bound 5 s',
}

async function startTimes(browser: LiveBrowser): Promise<void> {
  const found: Record<keyof typeof startFigures, number[]> = {
    ready_ms: [],
    first_values_ms: [],
    first_chart_ms: [],
    first_paint_ms: [],
    span_ms: [],
    edge_ms: [],
  }
  const nginx = await host.startNginx()
  const redis = await startRedis()
  try {
    for (let i = 0; i < Number(options.starts); i++) {
      const port = await freePort()
      const base = `http://127.0.0.1:${port}`
      const file = join(host.directory, `start-${i}.yaml`)
      const own = `self_telemetry:\n  listen: "127.0.0.1:${port}"\n  admin_socket: ""\n`
      writeFileSync(file, own + (await ownPlaces()))
      const began = performance.now()
      const since = () => performance.now() - began
      const child = host.start('bin/svc', ['run', '--config', file])
      await until('it answers', patienceMs, async () => (await statusOf(`${base}/ready`)) === 200)
      found.ready_ms.push(since())
      await Promise.all([
        firstValues(base).then(() => found.first_values_ms.push(since())),
        browser.open(`${base}/ui/overview`).then(async ({ page }) => {
          await until('the chart is drawn', patienceMs, () => page.evaluate<boolean>(drawn))
          found.first_chart_ms.push(since())
          const paint = await page.evaluate<number>(
            `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`,
          )
          found.first_paint_ms.push(paint)
          await page.context().close()
        }),
      ])
      const isTold = async () => {
        const line = await document<TracesLine>(`${base}/ui/api/traces?q=/looked-for`)
        return (line?.traces.length ?? 0) > 0
      }
      const isOnMap = async () => {
        const line = await document<MapLine>(`${base}/ui/api/map`)
        return line?.edges.some(({ protocol }) => protocol === 'redis') ?? false
      }
      const curl = ['-s', '-o', '/dev/null', `${nginx}/looked-for`]
      found.span_ms.push(await waited('curl', curl, isTold))
      if (await isOnMap()) console.log('another program asks a Redis: the next figure says nothing')
      const redisCall = ['-p', String(redis.port), 'incr', 'visits']
      found.edge_ms.push(await waited('redis-cli', redisCall, isOnMap))
      await host.end(child)
    }
  } finally {
    await redis.close()
  }
  for (const [name, note] of Object.entries(startFigures))
    report(`ui.start.${name}`, found[name as keyof typeof found], 'ms', 'less', note)
}

interface Cost {
  /** Of one core. */
  readonly cpuPercent: number
  /** MiB. */
  readonly rss: number
  readonly anonymous: number
}

/** MiB, summed over its mappings at this moment. */
function memoryNow(pid: number): Omit<Cost, 'cpuPercent'> {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1]) / 1024
  return { rss: of('Rss'), anonymous: of('Anonymous') }
}

/** What the agent takes from now on; memory as it is at the end. */
async function costNow({ pid }: Agent): Promise<Cost> {
  await sleep(1000) // what came before has settled, or what is open is drawn
  const [before, began] = [cpuSeconds(pid), performance.now()]
  await sleep(seconds * 1000)
  const cpuPercent = (100_000 * (cpuSeconds(pid) - before)) / (performance.now() - began)
  return { cpuPercent, ...memoryNow(pid) }
}

/** What each page follows, as a browser would ask, beside the overview that all of them do. */
const followed: Readonly<Record<string, string>> = {
  map: 'map',
  traces: 'traces',
  metrics: 'series?name=node_load1',
  logs: 'logs',
  profiles: 'profiles',
  pipeline: 'pipeline',
  service: 'service?name=nginx',
}

/** Reads what a page follows by curl, and lets go of it when that is over. */
async function whileRead<T>(base: string, id: string, look: () => Promise<T>): Promise<T> {
  const urls = ['overview?seconds=300', followed[id]].filter(path => path !== undefined)
  const readers = urls.map(path =>
    host.start('curl', ['-sN', `${base}/ui/api/${path}${path.includes('?') ? '&' : '?'}follow=1`]),
  )
  try {
    return await look()
  } finally {
    for (const reader of readers) await host.end(reader)
  }
}

async function costs(browser: LiveBrowser): Promise<void> {
  const shop = await startLiveShop(10)
  try {
    const agent = await host.startAgent('', { config: await ownPlaces(shop.log) })
    const url = (id: string) => `${agent.base}/ui/${id === 'service' ? 'service?name=nginx' : id}`
    const closed: Cost[] = []
    const open = new Map<string, { closed: Cost; open: Cost; read: Cost }[]>()
    const peaks: number[] = []
    await sleep(10_000) // the start is over
    for (let round = 0; round < Number(options.rounds); round++)
      for (const id of options.pages.split(',')) {
        const without = await costNow(agent)
        closed.push(without)
        const { page, faults } = await browser.open(url(id))
        const seen = await costNow(agent)
        await page.context().close()
        if (faults.length > 0) console.log(`${id}: the page is not well: ${faults.join('; ')}`)
        const read = await whileRead(agent.base, id, () => costNow(agent))
        peaks.push(seen.rss, read.rss)
        open.set(id, [...(open.get(id) ?? []), { closed: without, open: seen, read }])
      }
    const first = closed[0]!
    const most = Math.max(...peaks)
    const closedCpu = closed.map(each => each.cpuPercent)
    report('ui.cost.closed.cpu_percent', closedCpu, '%', 'less', 'of one core, no page open')
    report('ui.cost.closed.rss_mib', first.rss, 'MiB', 'less', 'before the first page')
    report('ui.cost.closed.anonymous_mib', first.anonymous, 'MiB', 'less', 'before the first page')
    for (const [id, looks] of open) {
      const added = (what: 'open' | 'read', of: keyof Cost) =>
        looks.map(each => each[what][of] - each.closed[of])
      const cpu = added('open', 'cpuPercent')
      report(`ui.cost.${id}.added_cpu_percent`, cpu, '%', 'less', 'of one core, bound 5')
      report(`ui.cost.${id}.served_cpu_percent`, added('read', 'cpuPercent'), '%', 'less', 'the same to curl')
      report(`ui.cost.${id}.added_rss_mib`, added('open', 'rss'), 'MiB', 'less')
      report(`ui.cost.${id}.added_anonymous_mib`, added('open', 'anonymous'), 'MiB', 'less')
    }
    report('ui.cost.most_rss_mib', most, 'MiB', 'less', 'with a page')
    report('ui.cost.most_added_rss_mib', most - first.rss, 'MiB', 'less', 'bound 48')
    await host.end(agent.child)
  } finally {
    await shop.close()
  }
}

/** Counts pictures from now on; what is returned ends that. */
async function pictures(page: Page): Promise<() => Promise<readonly number[]>> {
  await page.evaluate(`
    globalThis.gaps = []
    globalThis.counting = true
    let last = performance.now()
    requestAnimationFrame(function count(now) {
      gaps.push(now - last)
      last = now
      if (counting) requestAnimationFrame(count)
    })`)
  return () => page.evaluate<number[]>('counting = false, gaps')
}

async function largeProfile(browser: LiveBrowser): Promise<void> {
  const config = `agent:\n  ebpf: {enabled: false}\n  profiling: {enabled: false}\n  nodeexporter: {enabled: false}\n  logs: {enabled: false}\n  discovery: {enabled: false}\npipeline: {export: {queue: {enabled: false}}}\n`
  const agent = await host.startAgent('', { config })
  const flame = largeFlame(Number(options.frames))
  const { page } = await browser.open(`${agent.base}/ui/overview`)
  const forMs = 5000
  await page.route(/\/ui\/api\/flame/, route => route.fulfill({ json: flame }))
  const list = `${JSON.stringify(largeProfiles(flame.total, Date.now()))}\n`
  let asked = 0
  // Later ones are never answered: the list stands still.
  await page.route(/\/ui\/api\/profiles/, route =>
    asked++ === 0 ? route.fulfill({ body: list }) : undefined,
  )
  const began = performance.now()
  await page.goto(`${agent.base}/ui/profiles`)
  const icicle = page.locator('.icicle')
  await icicle.locator('canvas').waitFor({ timeout: patienceMs })
  report('ui.profile.shown_ms', performance.now() - began, 'ms', 'less', `${flame.parent.length} frames`)
  const { x, y, width } = (await icicle.boundingBox())!
  const { keyboard, mouse } = page
  let step = 0
  const acts: Readonly<Record<string, () => Promise<void>>> = {
    rest: () => sleep(50),
    keys_move: () => keyboard.press(['ArrowDown', 'ArrowRight', 'ArrowDown', 'ArrowLeft'][step % 4]!),
    keys_zoom: async () => {
      await keyboard.press(step % 8 < 4 ? 'ArrowDown' : 'Escape')
      if (step % 8 < 4) await keyboard.press('Enter')
      await sleep(100)
    },
    mouse_zoom: async () => {
      await mouse.move(x + width / 3, y + 60)
      await keyboard.down('Control')
      await mouse.wheel(0, step % 80 < 40 ? -40 : 40)
      await keyboard.up('Control')
    },
    mouse_pan: async () => {
      if (step % 50 === 0) {
        await mouse.up()
        await mouse.move(x + width / 2, y + 60)
        await mouse.down()
      }
      await mouse.move(x + width / 2 + 200 * Math.sin(step / 8), y + 60)
    },
  }
  for (const [what, act] of Object.entries(acts)) {
    await icicle.focus()
    // Some of it stands beside the picture when a part is as wide as the whole.
    if (what === 'mouse_pan') for (let i = 0; i < 10; i++) await acts.mouse_zoom!()
    const told = await pictures(page)
    const end = performance.now() + forMs
    for (step = 0; performance.now() < end; step++) await act()
    const gaps = await told()
    const sorted = gaps.toSorted((a, b) => a - b)
    const rate = (1000 * gaps.length) / gaps.reduce((a, b) => a + b, 0)
    const of = `ui.profile.${what}`
    report(`${of}.pictures_per_s`, rate, '{picture}/s', 'more', `${step} steps, bound 60`)
    report(`${of}.picture_ms`, gaps, 'ms', 'less')
    report(`${of}.picture_p95_ms`, sorted[Math.floor(sorted.length * 0.95)]!, 'ms', 'less')
    report(`${of}.picture_most_ms`, sorted.at(-1)!, 'ms', 'less')
  }
  await mouse.up()
  await page.context().close()
  await host.end(agent.child)
}

function weights(): void {
  const { first, overview, all } = pageWeights('dist/ui')
  report('ui.weight.first_bytes', first, 'By', 'less', 'brotli, of the first paint')
  report('ui.weight.overview_bytes', overview, 'By', 'less', 'with the overview')
  report('ui.weight.all_bytes', all, 'By', 'less', 'of all pages')
}

function windowCost(): void {
  const args = [...runtimeFlags, 'bench/lib/window-cost.ts']
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`bench/lib/window-cost.ts ends with ${status}`)
}

async function main(): Promise<void> {
  const inBrowser = (look: (browser: LiveBrowser) => Promise<void>) => async () => {
    const browser = await LiveBrowser.start()
    await look(browser).finally(() => browser.close())
  }
  const parts = {
    weight: weights,
    window: windowCost,
    start: inBrowser(startTimes),
    profile: inBrowser(largeProfile),
    cost: inBrowser(costs),
  }
  try {
    for (const [name, look] of Object.entries(parts))
      if (options.part === undefined || options.part === name) await look()
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
