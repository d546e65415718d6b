import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { type Resource, resource } from '../../foundation/model/resource.ts'
import { bucketOf, percentileMs } from './duration-counts.ts'
import type { EdgeNode } from './edge-graph.ts'
import { EdgeWindow, isRest, slotMs } from './edge-window.ts'

const windowMs = 120_000
const slots = windowMs / slotMs + 1
const begin = 1_700_000_003_500

/** A window whose clock stands. */
class Watched {
  nowMs = begin
  readonly window: EdgeWindow

  constructor(maxBytes = 1 << 20, lengthMs = windowMs) {
    this.window = new EdgeWindow({ maxBytes, windowMs: lengthMs, now: () => this.nowMs })
  }

  ask(
    client: Resource | string,
    server: Resource | string,
    { protocol = 'http1', port = 80, failed = false, clientNs = -1, serverNs = -1 } = {},
  ): void {
    this.window.add({
      client,
      server,
      protocol,
      failed,
      clientNs,
      serverNs,
      clientAddress: typeof client === 'string' ? '' : '10.0.0.1',
      serverAddress: typeof server === 'string' ? '' : '10.0.0.1',
      serverPort: port,
      probe: false,
    })
  }

  /** How many were counted in each slot that is kept. */
  counts(): Map<number, number> {
    const found = new Map<number, number>()
    this.window.history(
      1,
      () => 0,
      ({ fromMs, counts }) => found.set(fromMs / slotMs, counts[0]!),
    )
    return found
  }
}

function nameOf({ name, namespace, port, resource: of }: EdgeNode): string {
  return of === undefined ? `${name}:${port}` : `${namespace}/${name}`
}

const services = ['shop', 'cart', 'stock'].map(name => resource({ 'service.name': name }))
/** Another process of the first one, and one of the same name elsewhere. */
const sides = [
  ...services,
  resource({ 'service.name': 'shop', 'process.pid': 2 }),
  resource({ 'service.name': 'shop', 'k8s.namespace.name': 'blue' }),
  '10.0.0.7',
  '10.0.0.8',
]

function sideName(side: Resource | string): string {
  return typeof side === 'string'
    ? side
    : `${side.attributes.get('k8s.namespace.name') ?? ''}/${side.attributes.get('service.name')}`
}

interface Event {
  readonly key: string
  readonly slot: number
  readonly failed: boolean
  readonly ns: number
}

/** What `sums` is to find, of the events themselves. */
function expected(events: readonly Event[], nowMs: number, seconds: number): Map<string, Event[]> {
  const newest = Math.floor(nowMs / slotMs)
  const first = Math.max(newest - slots + 1, Math.min(newest, Math.round((nowMs - seconds * 1000) / slotMs)))
  const found = new Map<string, Event[]>()
  for (const event of events) {
    if (event.slot < first) continue
    const same = found.get(event.key) ?? []
    same.push(event)
    found.set(event.key, same)
  }
  return found
}

test('sums are those of the requests themselves, whatever comes when', () => {
  const step = fc.record({
    afterMs: fc.oneof({ weight: 20, arbitrary: fc.nat(3000) }, fc.nat(30_000), fc.nat(3 * windowMs)),
    client: fc.nat(sides.length - 1),
    server: fc.nat(sides.length - 1),
    protocol: fc.constantFrom('http1', 'redis'),
    port: fc.constantFrom(80, 81),
    failed: fc.boolean(),
    clientNs: fc.integer({ min: -1, max: 10 ** 9 }),
    serverNs: fc.integer({ min: -1, max: 10 ** 9 }),
  })
  const check = (steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]) => {
    const watched = new Watched()
    const events: Event[] = []
    for (const { afterMs, client, server, ...call } of steps) {
      watched.nowMs += afterMs
      const from = sides[client]!
      const to = sides[server]!
      if (typeof from === 'string' && typeof to === 'string') continue
      watched.ask(from, to, call)
      const fromName = typeof from === 'string' ? `${from}:0` : sideName(from)
      const toName = typeof to === 'string' ? `${to}:${call.port}` : sideName(to)
      events.push({
        key: `${fromName} ${toName} ${call.protocol}`,
        slot: Math.floor(watched.nowMs / slotMs),
        failed: call.failed,
        ns: call.serverNs >= 0 ? call.serverNs : call.clientNs,
      })
    }
    for (const seconds of [10, 60, windowMs / 1000, 1000]) {
      const want = expected(events, watched.nowMs, seconds)
      const sums = watched.window.sums(seconds)
      assert.equal(sums.length, want.size)
      for (const { edge, count, failed, durations, seconds: passed } of sums) {
        const of = want.get(`${nameOf(edge.from)} ${nameOf(edge.to)} ${edge.protocol}`)!
        assert.equal(count, of.length)
        assert.equal(failed, of.filter(event => event.failed).length)
        const timed = of.map(({ ns }) => ns).filter(ns => ns >= 0)
        assert.deepEqual(
          [...durations.keys()].flatMap(i => Array.from({ length: durations[i]! }, () => i)),
          timed.map(bucketOf).sort((a, b) => a - b),
        )
        assert.equal(percentileMs(durations, 0.5) === null, timed.length === 0)
        assert.ok(passed >= 1)
      }
    }
    assert.equal(watched.window.lost, 0)
    assert.equal(watched.window.leftOut, 0)
  }
  fc.assert(fc.property(fc.array(step, { maxLength: soak ? 400 : 80 }), check), {
    numRuns: soak ? 2000 : 100,
  })
})

test('a slot is there to the end of the window and no longer, and an edge as long as its slots', () => {
  const watched = new Watched()
  watched.ask(services[0]!, services[1]!)
  const first = Math.floor(begin / slotMs)
  watched.nowMs = (first + slots) * slotMs - 1
  assert.equal(watched.window.sums(3600)[0]!.count, 1)
  watched.nowMs++
  assert.deepEqual(watched.window.sums(3600), [])
  assert.deepEqual([...watched.window.edges()], [])
})

test('an edge that has just begun has its rate at once, and one second of it at the least', () => {
  const watched = new Watched()
  watched.nowMs += 100_000
  for (let i = 0; i < 100; i++) watched.ask(services[0]!, services[1]!)
  assert.equal(watched.window.sums(60)[0]!.seconds, 1)
  watched.nowMs += 2000
  assert.equal(watched.window.sums(60)[0]!.seconds, 2)
  watched.nowMs += 100_000
  watched.ask(services[0]!, services[1]!)
  const { count, seconds } = watched.window.sums(60)[0]!
  assert.equal(count, 1)
  assert.ok(seconds >= 55 && seconds <= 65, String(seconds))
})

test('processes of one service are one, also when one begins or ends', () => {
  const watched = new Watched()
  for (let i = 0; i < 10; i++)
    watched.ask(resource({ 'service.name': 'shop', 'process.pid': i }), services[1]!)
  const [sum, ...more] = watched.window.sums(60)
  assert.equal(more.length, 0)
  assert.equal(sum!.count, 10)
  assert.equal(sum!.edge.from.resource!.attributes.get('process.pid'), 9)
})

test('a hundred thousand addresses take no more memory than given, and each request of them counts', () => {
  for (const maxBytes of [48 << 10, 256 << 10, 2 << 20]) {
    const watched = new Watched(maxBytes)
    const { window } = watched
    const total = soak ? 400_000 : 100_000
    for (let i = 0; i < total; i++) {
      const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
      if (i % 2 === 0) watched.ask(address, services[i % 3]!, { serverNs: i })
      else watched.ask(services[i % 3]!, address, { clientNs: i, protocol: i % 5 === 0 ? 'redis' : 'http1' })
      if (i % 50 === 0) watched.nowMs += 25
      if (i % 1000 === 0) assert.ok(window.bytes <= maxBytes, `${window.bytes} of ${maxBytes}`)
    }
    assert.ok(window.bytes <= maxBytes)
    assert.equal(window.lost, 0)
    // Each of the last slots that are kept has had 20,000 requests in ten seconds.
    const kept = [...watched.counts()]
    for (const [slot, count] of kept.slice(1, -1)) assert.equal(count, (50 / 25) * slotMs, String(slot))
    assert.ok(kept.length > 1)
    assert.ok(window.leftOut > total / 10, String(window.leftOut))
    assert.ok(window.sums(10).some(({ edge }) => isRest(edge.from)))
    watched.nowMs += 2 * windowMs
    assert.deepEqual([...window.edges()], [])
    assert.equal(window.leftOut, 0)
    assert.ok(window.bytes < 8 << 10, String(window.bytes))
  }
})

test('addresses that fell silent make room for those that ask now', () => {
  const watched = new Watched()
  for (let i = 0; i < 500; i++) watched.ask(`10.1.${i >> 8}.${i & 255}`, services[0]!)
  watched.nowMs += 80_000
  watched.ask('10.2.0.1', services[0]!)
  watched.nowMs += slotMs
  watched.ask('10.2.0.2', services[0]!)
  const names = watched.window.sums(60).map(({ edge }) => edge.from.name)
  assert.ok(names.includes('10.2.0.2'))
  assert.equal(
    watched.window.sums(120).reduce((sum, { count }) => sum + count, 0),
    502,
  )
})

test('where memory ends the oldest slots go, and what is left is exact', () => {
  const watched = new Watched(96 << 10, 900_000)
  for (let second = 0; second < 400; second++) {
    for (let i = 0; i < 60; i++) watched.ask(`10.1.0.${i}`, services[i % 3]!, { failed: i === 0 })
    watched.nowMs += 1000
    assert.ok(watched.window.bytes <= 96 << 10)
  }
  const kept = [...watched.counts().values()]
  assert.ok(kept.length < 30 && kept.length > 6, String(kept.length))
  for (const count of kept.slice(0, -1)) assert.equal(count, 600)
})

test('more of one size than a record holds are counted all the same', () => {
  const watched = new Watched()
  for (let i = 0; i < 150_000; i++) watched.ask(services[0]!, services[1]!, { serverNs: 1e6 })
  const [sum] = watched.window.sums(10)
  assert.equal(sum!.count, 150_000)
  assert.equal(
    sum!.durations.reduce((a, b) => a + b),
    150_000,
  )
})

test('a clock that is set back a little goes on, and one that is set back far begins anew', () => {
  const watched = new Watched()
  watched.ask(services[0]!, services[1]!)
  watched.nowMs -= slotMs
  watched.ask(services[0]!, services[1]!)
  assert.equal(watched.window.sums(60)[0]!.count, 2)
  watched.nowMs -= 1e9
  watched.ask(services[0]!, services[1]!)
  assert.equal(watched.window.sums(60)[0]!.count, 1)
  watched.nowMs += 1e12
  watched.ask(services[0]!, services[1]!)
  assert.equal(watched.window.sums(60)[0]!.count, 1)
})

test('rates and columns are right after the clock was set back to before the window began', () => {
  const watched = new Watched()
  watched.nowMs -= 3_600_000
  for (let second = 0; second < 60; second++) {
    for (let i = 0; i < 10; i++) watched.ask(services[0]!, services[1]!)
    watched.nowMs += 1000
  }
  const { count, seconds } = watched.window.sums(60)[0]!
  assert.equal(count, 600)
  assert.ok(seconds >= 55 && seconds <= 65, String(seconds))
  const lengths: number[] = []
  watched.window.history(
    1,
    () => 0,
    ({ lengthMs }) => lengths.push(lengthMs),
  )
  assert.ok(lengths.slice(1, -1).every(length => length === slotMs))
})
