import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Signal } from '../../foundation/model/signal.ts'
import { Vitals } from '../../view/window/vitals.ts'
import type { ReloadState } from '../agent/reload.ts'
import { refusedReload } from '../agent/reload-view.ts'
import type { DocumentContext } from './document-context.ts'
import { Findings, ofFileSystem, ofHost, ofLoss, ofServices } from './findings.ts'
import type { ServicePast } from './services.ts'

interface Balance {
  readonly dropped?: Readonly<Record<string, number>>
  readonly rejected?: number
  readonly fill?: number
  readonly oldestMs?: number
  readonly destination?: object
}

/** An agent on which all is well, but for what is given. */
function partsOf(
  balances: Partial<Record<Signal, Balance>> = {},
  more: Partial<DocumentContext> = {},
): DocumentContext {
  const pipeline = {
    state: (signal: Signal) => {
      const { dropped = {}, rejected = 0, oldestMs = 0, destination } = balances[signal] ?? {}
      return { dropped: new Map(Object.entries(dropped)), rejected, oldestMs, destination }
    },
    fill: (signal: Signal) => balances[signal]?.fill ?? 0,
  }
  return {
    pipelines: { pipeline, faults: [], store: undefined, stages: () => [] },
    tracing: undefined,
    faults: () => [],
    stuck: () => undefined,
    reloads: () => ({ lastSuccessful: true }),
    hostMetrics: () => undefined,
    shown: (text: string) => text,
    window: { vitals: new Vitals({ windowMs: 60_000, maxBytes: 1 << 20 }), windowMs: 900_000 },
    ...more,
  } as unknown as DocumentContext
}

const sent: Balance = { destination: { lastError: null } }

function past(name: string, more: Partial<ServicePast['service']> = {}, usualP95Ms: number | null = null) {
  const service = {
    name,
    namespace: '',
    protocols: ['http'],
    requests_per_s: 10,
    serves: true,
    errors_percent: 0,
    p50_ms: 1,
    p95_ms: 2,
    p99_ms: 3,
    dependencies: [],
    trend: [],
    ...more,
  }
  return { service, requests: 600, usualP95Ms }
}

test('where all is well there is nothing to tell', () => {
  assert.deepEqual(new Findings(partsOf({ traces: sent })).of([past('cart', {}, 2)], 0), [])
})

test('without a receiver there is a note on what to set', () => {
  const [found, ...others] = new Findings(partsOf()).of([], 0)
  assert.deepEqual(others, [])
  assert.equal(found!.level, 'note')
  assert.match(found!.text, /stays in memory, for 15 min at most\. Set otlp\.endpoint/)
})

test('services are told when they fail or are slower than they mostly are, and do enough to tell', () => {
  const texts = (pasts: ServicePast[]) => ofServices(pasts).map(({ level, text }) => `${level}: ${text}`)
  assert.deepEqual(texts([past('checkout', { p95_ms: 240 }, 60)]), [
    'warn: checkout is slow: p95 is 240 ms, 4× its median in this window.',
  ])
  assert.deepEqual(texts([past('checkout', { p95_ms: 239 }, 60), past('new', { p95_ms: 9000 }, null)]), [])
  assert.deepEqual(
    texts([past('a', { errors_percent: 25 }), past('b', { errors_percent: 5, serves: false })]),
    ['bad: a: 25 % of requests fail.', 'warn: b: 5 % of outgoing requests fail.'],
  )
  // One call that fails as the first one of a program has a rate of one a second.
  assert.deepEqual(texts([{ ...past('rare', { requests_per_s: 1, errors_percent: 100 }), requests: 1 }]), [])
})

test('the host is told when it lacks memory, waits, or gives its time to others', () => {
  let now = 1000
  const vitals = new Vitals({ windowMs: 60_000, maxBytes: 1 << 20, now: () => now })
  assert.deepEqual(ofHost(vitals), [], 'what is not known says nothing')
  vitals.facts.memoryBytes = 16e9
  vitals.facts.memoryAvailableBytes = 0.4e9
  for (let i = 0; i < 10; i++) {
    now += 1000
    vitals.begin()
    vitals.set('pressureIo', 50)
    vitals.set('pressureMemory', 31)
    vitals.set('pressureCpu', 69)
    vitals.set('cpuSteal', 20)
    vitals.set('tcpRefused', 3)
  }
  assert.deepEqual(
    ofHost(vitals).map(({ level, text }) => `${level}: ${text}`),
    [
      'bad: Memory is nearly full: 2.5 % of 14.9 GiB available.',
      'bad: Tasks waited for memory during 31 % of the last 10 seconds.',
      'warn: Tasks waited for I/O during 50 % of the last 10 seconds.',
      "warn: The hypervisor gives 20 % of this host's CPU time to other guests.",
      'warn: New TCP connections are refused, 3.0/s: a server accepts them too slowly and its queue is full.',
    ],
  )
})

test('losses are told while they go on, and what nobody was to receive is none', () => {
  const dropped: Record<string, number> = { no_endpoint: 100, queue_full: 5, sampled: 7 }
  const findings = new Findings(partsOf({ traces: { ...sent, dropped } }))
  const losses = (nowMs: number) => findings.of([], nowMs).map(({ level, text }) => `${level}: ${text}`)
  assert.deepEqual(losses(0), [], 'what was lost before anybody looked is in the footer')
  dropped.queue_full = 25
  dropped.no_endpoint = 9000
  dropped.sampled = 9000
  assert.deepEqual(losses(10_000), [
    'bad: Traces lost, 2.0/s: queue_full, the receiver is down, or slower than the incoming data.',
  ])
  assert.equal(losses(15_000).length, 1, 'it does not come and go')
  assert.deepEqual([losses(20_000).length, losses(31_000).length, losses(42_000).length], [1, 0, 0])
  assert.match(
    ofLoss({ signal: 'logs', reason: 'odd', items: 1, perSecond: 40 }).text,
    /^Logs lost, 40\/s: odd\.$/,
  )
})

test('a queue that fills up is told before it is full', () => {
  const of = (fill: number) => new Findings(partsOf({ logs: { ...sent, fill, oldestMs: 200_000 } })).of([], 0)
  assert.deepEqual(of(0.49), [])
  assert.equal(of(0.5)[0]!.text, 'The logs queue is 50 % full; its oldest batch has waited 3 min.')
  assert.deepEqual([of(0.5)[0]!.level, of(0.95)[0]!.level], ['warn', 'bad'])
})

test('features that are limited are one sentence, but what keeps data from leaving stands alone', () => {
  const fault = (subsystem: string) => ({ subsystem, reason: 'no BTF', hint: 'see svc doctor' })
  const of = (...names: string[]) =>
    new Findings(partsOf({ traces: sent }, { faults: () => names.map(fault) })).of([], 0)
  assert.deepEqual(
    of('profiles').map(({ text }) => text),
    ['Profiles: no BTF; see svc doctor.'],
  )
  assert.deepEqual(
    of('profiles', 'logs', 'gpu', 'a', 'b', 'queue').map(({ text, link }) => [text, link]),
    [
      ['Queue: no BTF; see svc doctor.', '/ui/pipeline'],
      ['5 features are degraded: profiles, logs, gpu, a and 1 more.', '/ui/agent'],
    ],
  )
})

test('there are twelve at most, the worst first, and no kind hides the others', () => {
  const services = Array.from({ length: 40 }, (_, i) =>
    past(`s${i}`, { errors_percent: 100, p95_ms: 500 }, 10),
  )
  const balances = Object.fromEntries(
    ['traces', 'metrics', 'logs', 'profiles'].map(signal => [signal, { ...sent, fill: 0.95 }]),
  )
  const findings = new Findings(
    partsOf(balances, { stuck: () => 'the capture was last drained 20 s ago' }),
  ).of(services, 0)
  assert.ok(findings.length <= 12)
  const levels = findings.map(({ level }) => ['bad', 'warn', 'note'].indexOf(level))
  assert.deepEqual(levels, levels.toSorted())
  assert.ok(findings.some(({ text }) => text.startsWith('svc is stuck')))
  assert.equal(findings.filter(({ text }) => / queue is /.test(text)).length, 4)
})

test('a full file system is told with what is left of it', () => {
  const { level, text } = ofFileSystem({ mountPoint: '/var', sizeBytes: 100e9, availableBytes: 4.5e9 })
  assert.deepEqual([level, text], ['warn', '/var is 96 % full: 4.19 GiB of 93.1 GiB left.'])
  assert.equal(ofFileSystem({ mountPoint: '/', sizeBytes: 100e9, availableBytes: 0.1e9 }).level, 'bad')
})

test('a command that is offered takes the name of a file system as one word', () => {
  const commandOf = (mountPoint: string) =>
    ofFileSystem({ mountPoint, sizeBytes: 100e9, availableBytes: 1e9 }).command
  assert.equal(commandOf('/var/lib-2'), 'du -xh --max-depth=2 /var/lib-2')
  assert.equal(commandOf("/mnt/$(id) it's"), "du -xh --max-depth=2 '/mnt/$(id) it'\\''s'")
})

test('a reload that was refused is a warning of its own', () => {
  const state = {
    lastSuccessful: false,
    lastAttemptMs: 0,
    lastError: 'reload rejected: svc.yaml:1:1: a: unknown key; previous configuration still active',
    hint: 'correct that',
  } as ReloadState
  const faults = () => refusedReload(state)
  const found = new Findings(partsOf({ traces: sent }, { faults })).of([], 0)
  const [finding] = found
  assert.equal(found.length, 1)
  assert.deepEqual([finding!.level, finding!.link, finding!.command], ['warn', '/ui/agent', 'svc validate'])
  assert.match(finding!.text, /^Reload: rejected at 1970-01-01T00:00:00\.000Z: .*; correct that\.$/)
})
