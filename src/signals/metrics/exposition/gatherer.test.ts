import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../../../foundation/lib/logger.ts'
import { gauge, NoData, type Reader } from '../../../foundation/model/collector.ts'
import { boundsOf } from './bounds.ts'
import { Gatherer } from './gatherer.ts'
import { Page } from './page.ts'

const off = { enabled: false, max_metrics: 0, include_metrics: [], exclude_metrics: [], drop_labels: [] }

function gathererOf(readers: Readonly<Record<string, Reader>>, maxWaiting = 1) {
  const log: string[] = []
  const page = new Page({ namespace: 'node', bounds: boundsOf(off) })
  const gatherer = new Gatherer({
    collectors: Object.entries(readers).map(([name, reader]) => ({ name, reader })),
    page,
    log: createLogger({ level: 'debug', format: 'json', write: line => log.push(line) }),
    maxWaiting,
  })
  return {
    gatherer,
    log,
    lines: () =>
      page
        .write(new Set(gatherer.runs))
        .text.split('\n')
        .filter(line => line !== '' && !line.startsWith('#')),
    outcomes: () => Object.fromEntries(gatherer.runs.map(({ name, outcome }) => [name, outcome])),
  }
}

function reading(name: string): Reader {
  const family = gauge(name, 'One.')
  return { collect: readings => readings.set(family, 1) }
}

const after = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(new Error('aborted'))
    })
  })

test('one that fails costs only itself, and what it read before it failed', async () => {
  const half = gauge('half', 'Half.')
  const { gatherer, lines, outcomes, log } = gathererOf({
    good: reading('good'),
    broken: {
      collect(readings) {
        readings.set(half, 1)
        throw new Error('cannot read the rest')
      },
    },
    empty: {
      collect() {
        throw new NoData('there is no such device')
      },
    },
    lost: { wait: () => Promise.reject(new Error('the daemon hung up')), collect: () => assert.fail() },
  })
  await gatherer.gather(gatherer.runs, 1000)
  assert.deepEqual(outcomes(), { broken: 'failed', empty: 'no_data', good: 'success', lost: 'failed' })
  assert.deepEqual(lines(), ['node_good 1', 'node_half 1'])
  await gatherer.gather(gatherer.runs, 1000)
  const failures = log.filter(line => line.includes('collector failed'))
  assert.equal(failures.length, 2, 'a failure is told once, not at each scrape')
  assert.match(log.join(''), /"collector":"empty","reason":"there is no such device"/)
})

test('one that is late is cut off and named, the others are served, and it comes back', async () => {
  let hangs = true
  let aborted = 0
  let begun = 0
  const slow = gauge('slow', 'Slow.')
  const { gatherer, lines, outcomes } = gathererOf({
    a_slow: {
      async wait(signal) {
        begun++
        if (!hangs) return
        signal.addEventListener('abort', () => aborted++)
        await after(60_000, signal)
      },
      collect: readings => readings.set(slow, 1),
    },
    b_waits: { wait: () => after(1), collect: readings => readings.set(gauge('waits', 'Waits.'), 1) },
    c_good: reading('good'),
  })
  const started = performance.now()
  await gatherer.gather(gatherer.runs, 3000)
  assert.ok(performance.now() - started < 30_000)
  assert.deepEqual(outcomes(), { a_slow: 'late', b_waits: 'success', c_good: 'success' })
  assert.deepEqual(lines(), ['node_good 1', 'node_waits 1'])
  assert.equal(gatherer.runs[0]!.timeouts, 1)
  assert.equal(aborted, 1)
  hangs = false
  await gatherer.gather(gatherer.runs, 20_000)
  assert.equal(outcomes().a_slow, 'success')
  assert.deepEqual(lines(), ['node_good 1', 'node_slow 1', 'node_waits 1'])
  assert.equal(begun, 2)
})

test('each is said to have taken its own time', async () => {
  const { gatherer } = gathererOf(
    {
      quick: { ...reading('quick'), wait: () => Promise.resolve() },
      slow: { ...reading('slow'), wait: () => after(200) },
      stuck: { ...reading('stuck'), wait: signal => after(60_000, signal) },
    },
    3,
  )
  // Where this process gets no turn for a while, all of them take longer.
  let fair = false
  let told = ''
  for (let attempt = 0; attempt < 10 && !fair; attempt++) {
    await gatherer.gather(gatherer.runs, 400)
    const [quick, slow, stuck] = gatherer.runs.map(({ seconds }) => seconds)
    fair = quick! < 0.15 && slow! >= 0.19 && slow! < 0.4 && stuck! >= 0.39
    told = `${quick} ${slow} ${stuck}`
  }
  assert.ok(fair, told)
})

test('one that minds no signal is asked once however many scrapes come', async () => {
  let asked = 0
  let release: () => void = () => undefined
  const { gatherer, outcomes } = gathererOf({
    stuck: {
      wait: () => {
        asked++
        return new Promise<void>(resolve => {
          release = resolve
        })
      },
      collect: () => undefined,
    },
    good: reading('good'),
  })
  for (let i = 0; i < 3; i++) {
    await gatherer.gather(gatherer.runs, 20)
    assert.equal(outcomes().stuck, 'late')
  }
  assert.equal(asked, 1)
  release()
  await gatherer.gather(gatherer.runs, 1000)
  // Its answer was there, so it was either joined or asked anew.
  release()
  await gatherer.gather(gatherer.runs, 20)
  assert.ok(asked <= 3)
})

test('scrapes at the same time share what waits', async () => {
  let asked = 0
  const { gatherer, lines } = gathererOf({
    daemon: {
      async wait() {
        asked++
        await after(30)
      },
      collect: readings => readings.set(gauge('daemon', 'Daemon.'), asked),
    },
  })
  await Promise.all([1, 2, 3, 4].map(() => gatherer.gather(gatherer.runs, 20_000)))
  assert.equal(asked, 1)
  assert.deepEqual(lines(), ['node_daemon 1'])
})

test('no more wait at once than may, and those that wait long make room', async () => {
  let now = 0
  let most = 0
  const waits = (ms: number): Reader => ({
    async wait() {
      most = Math.max(most, ++now)
      await after(ms)
      now--
    },
    collect: () => undefined,
  })
  const quick = gathererOf({ a: waits(5), b: waits(5), c: waits(5), d: waits(5) }, 2)
  await quick.gatherer.gather(quick.gatherer.runs, 2000)
  assert.equal(most, 2)
  const slow = gathererOf({ a: waits(1500), b: waits(1500), c: waits(5) }, 1)
  most = 0
  await slow.gatherer.gather(slow.gatherer.runs, 20_000)
  assert.ok(most >= 2, 'they waited one after the other')
})

test('one that is late and in time by turns, as a client may make it, is told once a minute', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  let hangs = false
  let fails = false
  const readers = {
    slow: {
      wait: (signal: AbortSignal) => (hangs ? after(60_000, signal) : Promise.resolve()),
      collect() {
        if (fails) throw new Error('cannot read')
      },
    },
    other: {
      wait: (signal: AbortSignal) => (hangs ? after(60_000, signal) : Promise.resolve()),
      collect: () => undefined,
    },
  }
  const { gatherer, log, outcomes } = gathererOf(readers, 2)
  const flip = async () => {
    for (hangs of [true, false]) await gatherer.gather(gatherer.runs, hangs ? 5 : 20_000)
  }
  for (let i = 0; i < 20; i++) await flip()
  assert.deepEqual(outcomes(), { other: 'success', slow: 'success' })
  assert.equal(gatherer.runs[0]!.timeouts, 20)
  const of = (name: string) => log.filter(line => line.includes(`"collector":"${name}"`))
  assert.deepEqual([of('slow').length, of('other').length], [1, 1])
  fails = true
  await gatherer.gather(gatherer.runs, 20_000)
  assert.match(of('slow').at(-1)!, /"reason":"cannot read"/, 'another failure is not held back with it')
  fails = false
  t.mock.timers.tick(60_000)
  await flip()
  assert.match(of('slow').at(-1)!, /timed out after.*"repeated":19/)
  assert.deepEqual([of('slow').length, of('other').length], [3, 2])
})
