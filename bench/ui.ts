// The live page: how soon it shows something, what an open page costs the agent, how smoothly a large profile moves, what
// the page weighs, and what its window adds to a span. Runs dist/svc.cjs through bin/svc, as users do, and chromium.
// Options: --starts N, --seconds N (of each look at the cost), --rounds N, --pages NAME,NAME, --frames N,
// --part NAME (only one of start, cost, profile, weight, window).
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import type { MapLine, OverviewLine, TracesLine } from '../src/api/ui/documents.ts'
import { pageIds } from '../src/api/ui/pages.ts'
import { LiveBrowser } from '../test/helpers/browser.ts'
import { startLiveShop } from '../test/helpers/live-shop.ts'
import { freePort, until } from '../test/helpers/program.ts'
import { runtimeFlags } from '../test/helpers/runtime-flags.ts'
import { startRedis } from '../test/helpers/servers/redis.ts'
import { type Agent, BenchHost, cpuSeconds, fetchText, median, statusOf } from './lib/bench-host.ts'
import { largeFlame, largeProfiles } from './lib/large-profile.ts'

const { values: options } = parseArgs({
  options: {
    starts: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '2' },
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

async function startTimes(browser: LiveBrowser): Promise<void> {
  const found: Record<string, number[]> = {}
  const note = (what: string, ms: number) => {
    found[what] = [...(found[what] ?? []), ms]
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
      note('to /ready', since())
      await Promise.all([
        firstValues(base).then(() => note('to the first values of the CPU over HTTP (bound 3 s)', since())),
        browser.open(`${base}/ui/overview`).then(async ({ page }) => {
          await until('the chart is drawn', patienceMs, () => page.evaluate<boolean>(drawn))
          note('to the first chart of the page with values (bound 3 s)', since())
          const paint = await page.evaluate<number>(
            `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`,
          )
          note('from asking for the page to its first paint', paint)
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
      note('from curl to its span in /ui/api/traces (bound 2 s)', await waited('curl', curl, isTold))
      if (await isOnMap()) console.log('another program asks a Redis: the next figure says nothing')
      const redisCall = ['-p', String(redis.port), 'incr', 'visits']
      note(
        'from redis-cli to its edge in /ui/api/map (bound 5 s)',
        await waited('redis-cli', redisCall, isOnMap),
      )
      await host.end(child)
    }
  } finally {
    await redis.close()
  }
  for (const [what, times] of Object.entries(found))
    console.log(`${what}: ${median(times).toFixed(0)} ms (${times.map(time => time.toFixed(0)).join(' ')})`)
}

interface Cost {
  /** Of one core. */
  readonly cpuPercent: number
  /** MB. */
  readonly rss: number
  readonly anonymous: number
}

/** MB, summed over its mappings at this moment. */
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
    console.log(
      `no page open: ${median(closed.map(each => each.cpuPercent)).toFixed(2)} % of a core (${closed.map(each => each.cpuPercent.toFixed(1)).join(' ')}); ` +
        `at first ${first.rss.toFixed(0)} MB resident, ${first.anonymous.toFixed(0)} anonymous`,
    )
    for (const [id, looks] of open) {
      const added = (what: 'open' | 'read', of: keyof Cost) =>
        median(looks.map(each => each[what][of] - each.closed[of]))
      const signed = (value: number, digits: number) => `${value < 0 ? '' : '+'}${value.toFixed(digits)}`
      const [cpu, reader] = [added('open', 'cpuPercent'), added('read', 'cpuPercent')]
      console.log(
        `${id}: ${signed(cpu, 2)} % of a core (bound 5), of which ${signed(reader, 2)} serve the same to curl, and ` +
          `${signed(cpu - reader, 2)} are that chromium works and is observed; ` +
          `${signed(added('open', 'rss'), 1)} MB resident, ${signed(added('open', 'anonymous'), 1)} anonymous`,
      )
    }
    console.log(
      `the most resident with a page: ${Math.max(...peaks).toFixed(0)} MB, ` +
        `${(Math.max(...peaks) - first.rss).toFixed(0)} more than before the first (bound 48)`,
    )
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
  console.log(
    `a profile of ${flame.parent.length} frames stands ${(performance.now() - began).toFixed(0)} ms after it was asked for`,
  )
  const { x, y, width } = (await icicle.boundingBox())!
  const { keyboard, mouse } = page
  let step = 0
  const acts: Readonly<Record<string, () => Promise<void>>> = {
    'at rest': () => sleep(50),
    'moving by keys': () => keyboard.press(['ArrowDown', 'ArrowRight', 'ArrowDown', 'ArrowLeft'][step % 4]!),
    'zooming by keys': async () => {
      await keyboard.press(step % 8 < 4 ? 'ArrowDown' : 'Escape')
      if (step % 8 < 4) await keyboard.press('Enter')
      await sleep(100)
    },
    'zooming by mouse': async () => {
      await mouse.move(x + width / 3, y + 60)
      await keyboard.down('Control')
      await mouse.wheel(0, step % 80 < 40 ? -40 : 40)
      await keyboard.up('Control')
    },
    'panning by mouse': async () => {
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
    if (what.startsWith('panning')) for (let i = 0; i < 10; i++) await acts['zooming by mouse']!()
    const told = await pictures(page)
    const end = performance.now() + forMs
    for (step = 0; performance.now() < end; step++) await act()
    const gaps = (await told()).toSorted((a, b) => a - b)
    const whole = gaps.reduce((a, b) => a + b, 0)
    console.log(
      `${what}: ${((1000 * gaps.length) / whole).toFixed(1)} pictures a second over ${step} steps (bound 60); ` +
        `one takes ${median(gaps).toFixed(1)} ms, p95 ${gaps[Math.floor(gaps.length * 0.95)]!.toFixed(1)}, at most ${gaps.at(-1)!.toFixed(0)}`,
    )
  }
  await mouse.up()
  await page.context().close()
  await host.end(agent.child)
}

/** Bytes of the page on the wire: before any page, with the first, and all. */
function weights(): void {
  const folder = 'dist/ui'
  const sizes = new Map(
    readdirSync(folder)
      .filter(name => name.endsWith('.br'))
      .map(name => [name.slice(0, -3), readFileSync(join(folder, `${name}`))] as const),
  )
  /** What a file needs at once, as it names it; `import(…)` is later. */
  const needed = (name: string, found = new Set<string>()): Set<string> => {
    if (found.has(name)) return found
    found.add(name)
    const text = brotliDecompressSync(sizes.get(name)!).toString()
    const named = name.endsWith('.html') ? /\/assets\/([\w.-]+)"/g : /(?:\bfrom|\bimport)\s*"\.\/([\w.-]+)"/g
    for (const [, next] of text.matchAll(named)) needed(next!, found)
    return found
  }
  const sum = (names: Iterable<string>) =>
    [...names].reduce((total, name) => total + sizes.get(name)!.length, 0)
  const begin = needed('index.html')
  const overview = [...sizes.keys()].find(name => /^overview-.*\.js$/.test(name))!
  const { ui } = JSON.parse(readFileSync('budgets.json', 'utf8')) as { ui: Record<string, number> }
  console.log(
    `weight, brotli: ${sum(begin)} bytes of the first paint (bound ${ui.first_brotli_bytes}), ` +
      `${sum(needed(overview, new Set(begin)))} with the overview, ${sum(sizes.keys())} of all pages (bound ${ui.brotli_bytes})`,
  )
}

function windowCost(): void {
  const args = [...runtimeFlags, 'bench/lib/window-cost.ts']
  spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
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
