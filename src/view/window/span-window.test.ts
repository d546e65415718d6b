import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodedSpan } from '../../../test/helpers/encoded-span.ts'
import { soak } from '../../../test/helpers/soak.ts'
import type { AttributeValue } from '../../foundation/model/attributes.ts'
import { type Resource, resource } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import { Interest } from './span-routes.ts'
import type { TraceSearch } from './span-search.ts'
import { SpanWindow } from './span-window.ts'

const windowMs = 900_000
const least = 384 * 1024
const begin = 1_700_000_000_000
const shop = resource({ 'service.name': 'shop', 'process.pid': 12, 'host.name': 'h' })
const cart = resource({ 'service.name': 'cart' })

interface Told {
  readonly trace: number
  readonly id?: number
  readonly parent?: number
  readonly from?: Resource
  readonly name?: string
  readonly kind?: SpanKind
  readonly flags?: number
  readonly failed?: boolean
  readonly message?: string
  readonly startMs?: number
  readonly ms?: number
  readonly attributes?: Readonly<Record<string, AttributeValue>>
}

/** A window with a clock that the test sets. */
class Run {
  readonly window: SpanWindow
  nowMs = begin
  readonly #span = new Span()
  #ids = 0

  constructor(maxBytes = least) {
    this.window = new SpanWindow({ maxBytes, windowMs, now: () => this.nowMs })
  }

  tell(told: Told): number {
    const span = this.#span
    const id = told.id ?? ++this.#ids
    setId(span.traceId, told.trace)
    setId(span.spanId, id)
    setId(span.parentSpanId, told.parent ?? 0)
    span.flags = told.flags ?? 1
    span.name = told.name ?? 'GET /'
    span.kind = told.kind ?? SpanKind.server
    span.startUs = (told.startMs ?? this.nowMs - (told.ms ?? 5)) * 1000
    span.endUs = span.startUs + (told.ms ?? 5) * 1000
    span.status = told.failed ? StatusCode.error : StatusCode.unset
    span.statusMessage = told.message ?? ''
    span.attributes.clear()
    for (const [key, value] of Object.entries(told.attributes ?? {})) span.attributes.add(key, value)
    this.window.add(told.from ?? shop, span, encodedSpan(span))
    return id
  }

  find(search: Partial<TraceSearch> = {}) {
    return this.window.find({ ...everything, ...search })
  }

  /** Numbers of the traces that are found. */
  traces(search: Partial<TraceSearch> = {}): number[] {
    return this.find(search).traces.map(({ traceId }) => Number.parseInt(traceId, 16))
  }

  trace(trace: number, mostSpans = 1e6) {
    return this.window.trace(trace.toString(16).padStart(32, '0'), mostSpans)
  }
}

const everything: TraceSearch = {
  service: '',
  errors: false,
  minMs: 0,
  maxMs: 0,
  sinceMs: 0,
  untilMs: 0,
  text: '',
  shown: text => text,
  sort: 'new',
  limit: 1e6,
}

function setId(id: Uint8Array, value: number): void {
  id.set(Buffer.from(value.toString(16).padStart(id.length * 2, '0'), 'hex'))
}

test('a trace is found as it was told', () => {
  const run = new Run()
  const attributes = {
    'http.request.method': 'GET',
    'http.response.status_code': 500,
    ratio: -0.25,
    yes: true,
    no: false,
    empty: '',
    'grüße 👋': 'schön, 漢字 👋',
    list: ['a', '', 'ß'],
    ['k'.repeat(100)]: 'long key',
  }
  const root = run.tell({
    trace: 7,
    name: 'GET /grüße',
    ms: 12.5,
    failed: true,
    message: 'böse',
    attributes: { ...attributes, 'half \ud800': 'of a pair' },
  })
  run.tell({ trace: 7, parent: root, from: cart, kind: SpanKind.client, flags: 0x101, ms: 3.25 })
  run.tell({ trace: 8, parent: 99, flags: 0x301 })
  const found = run.trace(7)!
  assert.deepEqual(
    found.spans.map(({ attributes, ...span }) => ({ ...span, attributes: { ...attributes } })),
    [
      {
        spanId: '0000000000000001',
        parentId: '',
        parentInferred: false,
        name: 'GET /grüße',
        kind: SpanKind.server,
        startUs: (begin - 12.5) * 1000,
        endUs: begin * 1000,
        failed: true,
        statusMessage: 'böse',
        attributes: { ...attributes, 'half \ufffd': 'of a pair' },
        origin: 0,
      },
      {
        spanId: '0000000000000002',
        parentId: '0000000000000001',
        parentInferred: true,
        name: 'GET /',
        kind: SpanKind.client,
        startUs: (begin - 3.25) * 1000,
        endUs: begin * 1000,
        failed: false,
        statusMessage: '',
        attributes: {},
        origin: 1,
      },
    ],
  )
  assert.deepEqual(
    found.origins.map(({ service, pid, attributes }) => [service, pid, JSON.parse(attributes)]),
    [
      ['shop', 12, { 'service.name': 'shop', 'process.pid': 12, 'host.name': 'h' }],
      ['cart', 0, { 'service.name': 'cart' }],
    ],
  )
  assert.deepEqual([found.startUs, found.endUs, found.leftOut], [(begin - 12.5) * 1000, begin * 1000, 0])
  assert.equal(run.trace(8)!.spans[0]!.parentInferred, false)
  assert.equal(run.trace(9), undefined)
  assert.equal(run.window.trace('7', 10), undefined)
  assert.deepEqual([run.window.seen, run.window.kept], [3, 3])
  assert.deepEqual(run.window.services(), ['cart', 'shop'])
})

test('a trace of many spans is told from its beginning, and what is left out is counted', () => {
  const run = new Run()
  for (let i = 0; i < 100; i++) run.tell({ trace: 1, startMs: begin - i, ms: 1 })
  const { spans, leftOut } = run.trace(1, 30)!
  assert.deepEqual([spans.length, leftOut, spans[0]!.startUs], [30, 70, (begin - 99) * 1000])
})

test('a trace is listed by its first span, with all its services', () => {
  const run = new Run()
  run.tell({ trace: 1, parent: 5, from: cart, name: 'GET /cart', startMs: begin - 10, ms: 8 })
  run.tell({ trace: 1, from: shop, name: 'GET /shop', startMs: begin - 10, ms: 9, failed: true })
  run.tell({ trace: 1, parent: 5, from: cart, name: 'redis', startMs: begin - 5, ms: 6 })
  const { traces, matched, spans } = run.find()
  assert.deepEqual([matched, spans], [1, 3])
  assert.deepEqual(traces, [
    {
      traceId: '1'.padStart(32, '0'),
      name: 'GET /shop',
      service: 'shop',
      services: ['shop', 'cart'],
      startUs: (begin - 10) * 1000,
      endUs: (begin + 1) * 1000,
      spans: 3,
      errors: 1,
      interest: Interest.error,
    },
  ])
})

test('a trace that a client began is named by whom it asked, who knows the route', () => {
  const run = new Run()
  run.tell({ trace: 1, from: shop, name: 'GET', kind: SpanKind.client, ms: 9 })
  run.tell({ trace: 1, parent: 5, from: cart, name: 'GET /cart/*', ms: 7 })
  const { traces } = run.find()
  assert.deepEqual([traces[0]!.name, traces[0]!.service], ['GET /cart/*', 'shop'])
})

test('each condition is kept, and all of them together', () => {
  const run = new Run()
  run.tell({ trace: 1, ms: 100, startMs: begin - 5000 })
  run.tell({ trace: 1, parent: 1, kind: SpanKind.client, ms: 20, startMs: begin - 5000, failed: true })
  run.tell({ trace: 2, ms: 10, startMs: begin - 3000 })
  run.tell({ trace: 2, parent: 1, from: cart, ms: 4, startMs: begin - 3000 })
  // Whoever called it is not known, and it answers nobody.
  run.tell({ trace: 3, parent: 1, from: cart, kind: SpanKind.client, ms: 50, startMs: begin - 1000 })
  const check = (search: Partial<TraceSearch>, want: number[]) => assert.deepEqual(run.traces(search), want)
  check({}, [3, 2, 1])
  check({ limit: 2 }, [3, 2])
  check({ sort: 'slow' }, [1, 3, 2])
  check({ sort: 'errors' }, [1, 3, 2])
  check({ service: 'cart' }, [3, 2])
  check({ service: 'nobody' }, [])
  check({ errors: true }, [1])
  check({ minMs: 10 }, [3, 2, 1])
  check({ minMs: 15, maxMs: 25 }, [])
  check({ minMs: 10.5 }, [3, 1])
  check({ maxMs: 50 }, [3, 2])
  check({ maxMs: 5 }, [2])
  check({ maxMs: 5, service: 'shop' }, [])
  check({ minMs: 5, service: 'cart' }, [3])
  check({ sinceMs: 3000 }, [3, 2])
  check({ untilMs: 3000 }, [2, 1])
  check({ sinceMs: 4000, untilMs: 2000 }, [2])
  check({ sinceMs: 4000, untilMs: 2000, errors: true }, [])
  assert.equal(run.find({ limit: 1 }).matched, 3)
})

test('texts are found in names, messages and values, but not what may not be seen', () => {
  const run = new Run()
  run.tell({ trace: 1, name: 'GET /Users/*', attributes: { 'url.path': '/users/jane@example.com' } })
  run.tell({ trace: 2, message: 'Connection REFUSED', attributes: { 'http.response.status_code': 503 } })
  run.tell({ trace: 3, attributes: { tags: ['Grün', 'ÄRGER'], pass: 'hunter2' } })
  const shown = (text: string, key?: string) =>
    key === 'pass' ? '***' : text.replace(/\S+@\S+/, '[REDACTED]')
  const check = (text: string, want: number[]) => assert.deepEqual(run.traces({ text, shown }), want)
  check('users', [1])
  check('refused', [2])
  check('503', [2])
  check('GRÜN', [3])
  check('ärger', [3])
  check('jane', [])
  check('hunter2', [])
  check('url.path', [])
  check('nowhere', [])
})

test('what ended before the window is not shown', () => {
  const run = new Run()
  run.tell({ trace: 1, failed: true })
  run.nowMs += windowMs
  run.tell({ trace: 2 })
  assert.deepEqual(run.traces(), [2, 1])
  run.nowMs++
  assert.deepEqual(run.traces(), [2])
  assert.equal(run.trace(1), undefined)
  assert.deepEqual(
    run.window.routesOf('shop', 10).map(({ spans }) => spans),
    [1],
  )
})

test('routes of a service are those that it answered, or else those of its calls', () => {
  const run = new Run()
  for (let i = 1; i <= 3; i++) run.tell({ trace: i, name: 'GET /a', ms: i === 2 ? 30 : 5, failed: i === 3 })
  run.tell({ trace: 4, name: 'GET /b' })
  run.tell({ trace: 4, parent: 1, name: 'SELECT', kind: SpanKind.client })
  run.tell({ trace: 5, parent: 1, name: 'GET', kind: SpanKind.client, from: cart })
  assert.deepEqual(run.window.routesOf('shop', 10), [
    { name: 'GET /a', spans: 3, errors: 1, slowestMs: 30, traceId: '2'.padStart(32, '0') },
    { name: 'GET /b', spans: 1, errors: 0, slowestMs: 5, traceId: '4'.padStart(32, '0') },
  ])
  assert.equal(run.window.routesOf('shop', 1).length, 1)
  assert.deepEqual(
    run.window.routesOf('cart', 10).map(({ name }) => name),
    ['GET'],
  )
  assert.deepEqual(run.window.routesOf('nobody', 10), [])
})

test('traces that failed, the slowest and an example outlive fifty times what the young ring holds', () => {
  const run = new Run()
  let trace = 1_000_000
  const ordinary = (spans: number) => {
    for (let i = 0; i < spans; i++) {
      // A hundred a second, of ten routes, as fast as they are.
      run.nowMs += 10
      trace++
      const attributes = { 'url.path': `/ordinary/${i}`, 'server.address': '10.0.0.7' }
      const name = `GET /${i % 10}`
      const parent = run.tell({ trace, name, ms: 5 + (i % 97) / 100, attributes })
      run.tell({ trace, parent, name: 'GET', kind: SpanKind.client, ms: 1, attributes })
    }
  }
  const young = () => {
    let spans = 0
    while (run.trace(4) !== undefined) {
      ordinary(100)
      spans += 200
    }
    return spans
  }
  // Not the first of its ten seconds.
  ordinary(3050)
  run.tell({ trace: 4, name: 'GET /1', ms: 5 })
  const capacity = young()
  assert.ok(capacity > 400, `${capacity}`)
  const from = run.nowMs
  // The part that fails ends first, and what it was made for does not.
  run.tell({ trace: 1, parent: 77, name: 'POST /pay', kind: SpanKind.client, failed: true })
  run.tell({ trace: 1, name: 'GET /1' })
  run.tell({ trace: 2, parent: 77, name: 'SELECT', kind: SpanKind.client, ms: 700 })
  run.tell({ trace: 2, name: 'GET /2', ms: 800 })
  run.tell({ trace: 3, name: 'GET /rare', ms: 1 })
  ordinary(25 * capacity)
  assert.ok(run.nowMs - from < windowMs)
  assert.equal(run.trace(1)?.spans.length, 2)
  assert.equal(run.trace(2)?.spans.length, 2)
  assert.deepEqual(run.traces({ errors: true }), [1])
  const [slowest] = run.find({ sort: 'slow' }).traces
  assert.deepEqual([Number(slowest?.traceId), slowest?.interest], [2, Interest.slow])
  assert.ok(run.find().traces.some(({ interest }) => interest === Interest.example))
})

test('a flood of errors leaves room for the first of other kinds', () => {
  const run = new Run()
  run.tell({ trace: 1, name: 'POST /pay', failed: true })
  for (let i = 0; i < 20_000; i++) {
    run.nowMs += 5
    run.tell({ trace: 100 + i, name: 'GET /broken', failed: true, attributes: { 'error.type': '500' } })
  }
  assert.equal(run.trace(1)?.spans.length, 1)
})

test('who puts everything into one trace takes nothing from others', () => {
  const run = new Run()
  run.tell({ trace: 1, name: 'POST /pay', failed: true })
  for (let i = 0; i < 50_000; i++) {
    run.nowMs += 5
    run.tell({ trace: 2, name: 'GET /same', failed: i % 100 === 0 })
  }
  assert.equal(run.trace(1)?.spans.length, 1)
})

test('many processes that live shortly take no more than their share, and what is kept names the right one', () => {
  const run = new Run()
  const make = (i: number) =>
    resource({
      'service.name': `job-${i % 7}`,
      'process.pid': i + 1,
      'process.command_line': `job --number ${i} ${'x'.repeat(i % 3000)}`,
    })
  for (let i = 0; i < (soak ? 200_000 : 3000); i++) {
    run.nowMs += 20
    run.tell({ trace: i + 1, from: make(i), failed: i % 10 === 0, attributes: { i } })
    assert.ok(run.window.bytes <= least)
  }
  const { traces } = run.find()
  assert.ok(traces.length > 20)
  assert.ok(traces.some(({ errors }) => errors > 0))
  for (const { traceId, service } of traces) {
    const found = run.window.trace(traceId, 1)!
    const i = Number(found.spans[0]!.attributes.i)
    assert.equal(service, `job-${i % 7}`)
    assert.equal(found.origins[0]!.pid, i + 1)
  }
})

const letters = ['a', 'ß', '漢', '👋', '\ud800'] as const
const anySpan = fc.record({
  from: fc.nat({ max: 11 }),
  trace: fc.integer({ min: 1, max: 60 }),
  route: fc.nat({ max: 200 }),
  failed: fc.boolean(),
  isRoot: fc.boolean(),
  ms: fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: 5000 })),
  waitMs: fc.nat({ max: 500 }),
  letter: fc.constantFrom(...letters),
  attributes: fc.array(
    fc.oneof(fc.nat({ max: 80 }), fc.nat({ max: 3000 })).map(length => -length),
    { maxLength: 40 },
  ),
  nameLength: fc.oneof(fc.nat({ max: 30 }), fc.nat({ max: 2000 })),
})
type AnySpan = ReturnType<typeof anySpan.generate>['value']

const origins = Array.from({ length: 12 }, (_, i) =>
  resource({ 'service.name': `s${i % 5}`, 'process.pid': i + 1 }),
)

function told(span: AnySpan, n: number): Told {
  const { letter } = span
  const attributes: Record<string, AttributeValue> = { n }
  for (const [i, length] of span.attributes.entries()) {
    const text = letter.repeat(-length)
    attributes[`key-${(span.route * 7 + i) % 300}`] =
      i % 5 === 1 ? -length : i % 5 === 2 ? [text, text] : text
  }
  return {
    ...span,
    id: n,
    parent: span.isRoot ? 0 : 1,
    from: origins[span.from]!,
    name: `route ${span.route} ${letter.repeat(span.nameLength)}`,
    attributes,
  }
}

/** Whether a text is the other one, or as much of it as there is room for. */
function isBegin(got: AttributeValue | undefined, whole: AttributeValue | undefined): boolean {
  if (typeof whole === 'object')
    return Array.isArray(got) && got.length <= whole.length && got.every((each, i) => isBegin(each, whole[i]))
  if (typeof got !== 'string' || typeof whole !== 'string') return got === whole
  return Buffer.from(whole).toString().startsWith(got)
}

/** `spanAt` tells the n-th that was told, from 1 on. */
function holdsTrue(run: Run, spanAt: (n: number) => AnySpan): void {
  const { traces, matched, spans: shown } = run.find()
  assert.equal(matched, traces.length)
  assert.ok(shown <= run.window.kept)
  const seen = new Set<number>()
  for (const listed of traces) {
    const found = run.window.trace(listed.traceId, 1e6)!
    assert.equal(found.spans.length, listed.spans)
    assert.equal(found.spans.filter(({ failed }) => failed).length, listed.errors)
    assert.equal(Math.min(...found.spans.map(({ startUs }) => startUs)), listed.startUs)
    assert.equal(Math.max(...found.spans.map(({ endUs }) => endUs)), listed.endUs)
    for (const span of found.spans) {
      const n = Number.parseInt(span.spanId, 16)
      assert.ok(!seen.has(n), 'kept twice')
      seen.add(n)
      const was = told(spanAt(n), n)
      assert.equal(Number.parseInt(listed.traceId, 16), was.trace)
      assert.ok(isBegin(span.name, was.name))
      assert.deepEqual([span.failed, span.parentId === ''], [was.failed, was.parent === 0])
      assert.equal(found.origins[span.origin]!.pid, was.from!.attributes.get('process.pid'))
      assert.equal(span.attributes.n, n)
      for (const [key, value] of Object.entries(span.attributes))
        assert.ok(isBegin(value, was.attributes![key]), key)
    }
  }
  assert.equal(seen.size, shown)
  // The last ones are always there: the ring of the young holds some at their largest.
  const last = run.window.seen
  for (let n = last; n > Math.max(0, last - 15); n--) assert.ok(seen.has(n), `${n}`)
}

test('the bound holds whatever comes, and what is kept is whole', () => {
  fc.assert(
    fc.property(fc.array(anySpan, { minLength: 100, maxLength: 500 }), spans => {
      const run = new Run()
      for (const [i, span] of spans.entries()) {
        run.nowMs += span.waitMs
        run.tell(told(span, i + 1))
        assert.ok(run.window.bytes <= least)
      }
      holdsTrue(run, n => spans[n - 1]!)
      assert.equal(run.find().spans, run.window.kept)
    }),
    { numRuns: soak ? 300 : 15 },
  )
})

test('the bound holds for long', () => {
  const run = new Run(1 << 20)
  const samples = fc.sample(anySpan, { numRuns: 500, seed: 7 })
  const spanAt = (n: number): AnySpan => ({
    ...samples[(n * 7919) % samples.length]!,
    trace: Math.ceil(n / 3),
  })
  for (let n = 1; n <= (soak ? 1_000_000 : 10_000); n++) {
    run.nowMs += 1
    run.tell(told(spanAt(n), n))
    assert.ok(run.window.bytes <= 1 << 20)
    if (n % (soak ? 50_000 : 5000) === 0) holdsTrue(run, spanAt)
  }
})
