import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, test } from 'node:test'
import type { ReceivedPoint } from '../../../../test/helpers/metric-receiver.ts'
import { until } from '../../../../test/helpers/program.ts'
import { ReceivedSeries } from '../../../../test/helpers/received-series.ts'
import { scrapeJob } from '../../../../test/helpers/scrape-job.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { TargetClient } from './fetch/target-client.ts'
import type { ScrapeJob } from './scrape-job.ts'
import { ScrapeManager } from './scrape-manager.ts'
import type { SeriesSink } from './series-sink.ts'

const waitMs = 30_000
let open: { close(): unknown }[] = []

afterEach(async () => {
  for (const one of open.reverse()) await one.close()
  open = []
})

async function startTarget(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  open.push({
    close: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(resolve))
    },
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const page: RequestListener = (_request, response) => {
  response.setHeader('content-type', 'text/plain')
  response.end('a 1\n')
}

/** A job with targets at these addresses. */
function jobOf(addresses: readonly string[], own: Partial<ScrapeJob> = {}): ScrapeJob {
  const targets = addresses.map(address => new Map([['__address__', address]]))
  const groups = [{ source: 'here', targets, labels: new Map<string, string>() }]
  return scrapeJob({ intervalMs: 100, timeoutMs: 90, sources: [{ kind: 'static', groups }], ...own })
}

function startManager() {
  const told = new ReceivedSeries()
  const points: ReceivedPoint[] = []
  const opened: string[] = []
  const manager = new ScrapeManager({
    sink: told.sink,
    log: silentLogger,
    open: ({ url, job }) => {
      opened.push(url)
      const client = new TargetClient({
        url,
        access: job.access,
        compression: 'never',
        bodyBytes: 0,
        owner: 'test',
      })
      // Targets are in this process: one that gets no turn for a moment is not what is tested here.
      return { ask: ({ stop }) => client.ask({ timeoutMs: 20_000, stop }), close: () => client.close() }
    },
  })
  open.push({ close: () => manager.stop() })
  /** All that was told of a metric. */
  const of = (metric: string) => {
    points.push(...told.take())
    return points.filter(point => point.metric === metric)
  }
  const targets = () => manager.state.flatMap(job => job.targets)
  return { manager, of, opened, targets }
}

/** Enough for whatever a microtask or a timer of 0 ms would still do. */
const aMoment = () => new Promise(resolve => setTimeout(resolve, 20))

test('the end tells for as long as it may, and no longer', async () => {
  const many = Array.from({ length: 400 }, (_, i) => `m${i} 1\n`).join('')
  const address = await startTarget((_request, response) => response.end(many))
  const told = new ReceivedSeries()
  let isSlow = false
  const sink: SeriesSink = {
    ...told.sink,
    add: (...of) => {
      for (const until = performance.now() + (isSlow ? 20 : 0); performance.now() < until; );
      told.sink.add(...of)
    },
  }
  const manager = new ScrapeManager({
    sink,
    log: silentLogger,
    open: ({ url, job }) =>
      new TargetClient({ url, access: job.access, compression: 'never', bodyBytes: 0, owner: 'test' }),
  })
  open.push({ close: () => manager.stop(0) })
  manager.configure([jobOf([address])], undefined)
  await until('it was scraped', waitMs, () => manager.counts.scrapes > 0)
  isSlow = true
  let ended = false
  const all = manager.stop(100).then(() => {
    ended = true
  })
  // To tell all takes eight seconds.
  await until('the end is over', 4_000, () => ended)
  await all
  isSlow = false
})

test('targets are scraped until the end, which ends their series', async () => {
  const address = await startTarget(page)
  const { manager, of, targets } = startManager()
  manager.configure([jobOf([address])], undefined)
  await until('scrapes are there', waitMs, () => of('a').length > 2)
  assert.ok(of('up').every(({ value, timeMs }) => value === 1 && timeMs > 0))
  assert.equal(targets()[0]!.health, 'up')
  await manager.stop()
  assert.deepEqual(
    ['a', 'up', 'scrape_duration_seconds'].map(metric => of(metric).filter(({ ended }) => ended).length),
    [1, 1, 1],
  )
  const { length } = of('up')
  await new Promise(resolve => setTimeout(resolve, 250))
  assert.equal(of('up').length, length)
})

test('what is configured last holds, and what was stopped at once begins nothing', async () => {
  const addresses = [await startTarget(page), await startTarget(page)]
  const { manager, opened, targets, of } = startManager()
  manager.configure([jobOf([addresses[0]!])], undefined)
  manager.configure([jobOf([addresses[1]!])], undefined)
  await until('there is a scrape', waitMs, () => of('a').length > 0)
  assert.deepEqual(
    targets().map(({ target }) => target.url),
    [`http://${addresses[1]}/metrics`],
  )
  assert.deepEqual(opened, [`http://${addresses[1]}/metrics`])
  const other = startManager()
  other.manager.configure([jobOf(addresses)], undefined)
  await other.manager.stop()
  await aMoment()
  assert.deepEqual(other.opened, [])
})

test('a reload that changes nothing touches nothing, and one that changes settings misses no scrape', async () => {
  const address = await startTarget(page)
  const { manager, opened, of, targets } = startManager()
  manager.configure([jobOf([address])], undefined)
  await until('there is a scrape', waitMs, () => of('a').length > 0)
  const [{ target: before }] = targets() as [ReturnType<typeof targets>[number]]
  manager.configure([jobOf([address])], undefined)
  await aMoment()
  assert.equal(targets()[0]!.target, before)
  assert.equal(opened.length, 1)
  manager.configure([jobOf([address], { externalLabels: new Map([['x', 'y']]) })], undefined)
  await until('the label is there', waitMs, () => of('a').some(({ attributes }) => attributes.x === 'y'))
  await until('the label is told of the scrape', waitMs, () =>
    of('up').some(({ attributes }) => attributes.x === 'y'),
  )
  assert.deepEqual([opened.length, targets()[0]!.failures], [2, 0])
  assert.equal(of('a').filter(({ ended, attributes }) => ended && attributes.x === undefined).length, 1)
})

test('settings that change while a target is slow to answer cost it no scrape', async () => {
  let answer: (() => void) | undefined
  const address = await startTarget((request, response) => {
    if (answer === undefined) answer = () => page(request, response)
    else page(request, response)
  })
  const { manager, of, opened, targets } = startManager()
  const own = { intervalMs: 2000, timeoutMs: 2000 }
  manager.configure([jobOf([address], own)], undefined)
  await until('the target is asked', waitMs, () => answer !== undefined)
  manager.configure([jobOf([address], { ...own, externalLabels: new Map([['x', 'y']]) })], undefined)
  await aMoment()
  assert.equal(opened.length, 1)
  answer!()
  await until('the answer is there', waitMs, () => of('a').length > 0)
  await until('the settings are in use', waitMs, () => opened.length === 2)
  const [{ failures, health }] = targets() as [ReturnType<typeof targets>[number]]
  assert.deepEqual({ failures, health }, { failures: 0, health: 'up' })
})

test('targets that belong to this agent are those of its share, also when shares are given up', async () => {
  const addresses = Array.from({ length: 20 }, (_, i) => `127.0.0.1:${i + 1}`)
  const { manager, targets } = startManager()
  const job = jobOf(addresses, { intervalMs: 3_600_000, timeoutMs: 1000 })
  manager.configure([job], { index: 0, count: 2, replicas: 1 })
  const dropped = () => manager.state[0]!.droppedTotal
  await until('its share is there', waitMs, () => targets().length > 0 && targets().length + dropped() === 20)
  const share = targets().length
  assert.ok(share < 20)
  manager.configure([job], { index: 1, count: 2, replicas: 1 })
  await until('the others are there', waitMs, () => targets().length === 20 - share)
  manager.configure([job], undefined)
  await until('all are there', waitMs, () => targets().length === 20)
})

test('a target that comes back within its grace ends nothing, and one that stays away does', async () => {
  const [one, other] = [await startTarget(page), await startTarget(page)]
  const { manager, of, opened, targets } = startManager()
  const ended = (address: string) =>
    of('a').filter(point => point.ended && point.resource['service.instance.id'] === address).length
  // The grace is two intervals.
  const long = { intervalMs: 5000, timeoutMs: 5000 }
  const short = { intervalMs: 1000, timeoutMs: 1000 }
  manager.configure([jobOf([one, other], long)], undefined)
  await until('both are up', waitMs, () => targets().filter(({ health }) => health === 'up').length === 2)
  manager.configure([jobOf([one], long)], undefined)
  await until('one is left', waitMs, () => targets().length === 1)
  manager.configure([jobOf([one, other], long)], undefined)
  await until('both are back', waitMs, () => targets().length === 2)
  assert.equal(opened.length, 2, 'the same loops')
  assert.equal(ended(other), 0)
  manager.configure([jobOf([one, other], short)], undefined)
  await until(
    'both are asked more often',
    waitMs,
    () => targets().filter(({ health }) => health === 'up').length === 2,
  )
  manager.configure([jobOf([one], short)], undefined)
  await until('the end is told', waitMs, () => ended(other) === 1)
  assert.equal(ended(one), 0)
})

test('thousands of targets begin without keeping the thread, and all of them end', async () => {
  const addresses = Array.from({ length: 3000 }, (_, i) => `127.0.0.1:${i + 1}`)
  const { manager, targets, of } = startManager()
  const job = jobOf(addresses, { intervalMs: 3_600_000, timeoutMs: 1000 })
  const twice = { ...job, sources: [...job.sources, ...job.sources] }
  manager.configure([twice], undefined)
  await until('all are there', waitMs, () => targets().length === 3000)
  assert.equal(manager.state[0]!.sources.length, 1)
  manager.configure([], undefined)
  assert.deepEqual(manager.state, [])
  await manager.stop()
  // Some may have had their moment meanwhile.
  const up = of('up')
  assert.equal(2 * up.filter(({ ended }) => ended).length, up.length)
})

test('a target that does not answer is told as down, with its reason', async () => {
  const address = await startTarget((_request, response) => response.writeHead(500).end())
  const bad = await startTarget((_request, response) => response.end('a x\n'))
  const { manager, of, targets } = startManager()
  manager.configure([jobOf([address, bad])], undefined)
  await until('both are down', waitMs, () => targets().filter(({ health }) => health === 'down').length === 2)
  const byUrl = new Map(
    targets().map(({ target, errorType, error }) => [target.url, `${errorType}: ${error}`]),
  )
  assert.match(byUrl.get(`http://${address}/metrics`)!, /^http_status: .*500/)
  assert.match(byUrl.get(`http://${bad}/metrics`)!, /^page: line 1: no number after the name: a x$/)
  assert.ok(of('up').every(({ value }) => value === 0))
  assert.equal(of('a').length, 0)
  assert.ok(manager.counts.failures >= 2)
})

test('the labels of a target count more than the external ones', async () => {
  const address = await startTarget(page)
  const { manager, of } = startManager()
  const groups = [
    { source: '', targets: [new Map([['__address__', address]])], labels: new Map([['zone', 'own']]) },
  ]
  const externalLabels = new Map([
    ['zone', 'other'],
    ['x', 'y'],
  ])
  manager.configure([jobOf([], { sources: [{ kind: 'static', groups }], externalLabels })], undefined)
  await until('there are scrapes', waitMs, () => of('up').length > 0 && of('a').length > 0)
  for (const metric of ['up', 'a'])
    assert.deepEqual({ ...of(metric)[0]!.attributes }, { x: 'y', zone: 'own' })
})
