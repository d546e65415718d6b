import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { defaults } from '../../config/index.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { resource } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import type { TapLine } from '../../view/api/ui/documents.ts'
import type { TapQuery } from '../../view/api/ui/source.ts'
import { ExportPipelines } from '../agent/export-pipelines.ts'
import type { DocumentContext } from './document-context.ts'
import { type ShownText, shownText } from './shown-text.ts'
import { tap } from './tap.ts'

const scope = { name: 'svc/network', version: '1' }
const cart = resource({ 'service.name': 'cart', 'process.command_args': ['cart', '--user=ann@example.com'] })
const shop = resource({ 'service.name': 'shop' })
const mailHidden = (text: string) => text.replaceAll('ann@example.com', '[email]')

const open: ExportPipelines[] = []
afterEach(async () => {
  for (const pipelines of open.splice(0)) await pipelines.pipeline.close()
})

/** A pipeline whose items go nowhere. */
function pipelinesOf(): ExportPipelines {
  const pipelines = new ExportPipelines(defaults(), {
    log: silentLogger,
    observe: () => {},
    lock: () => true,
  })
  open.push(pipelines)
  return pipelines
}

function tapOf(pipelines: ExportPipelines, query: Partial<TapQuery> = {}, shown: ShownText = mailHidden) {
  const asked: TapQuery = { signal: 'traces', service: '', errors: false, min_ms: 0, otlp: false, ...query }
  return tap({ pipelines, shown } as Pick<DocumentContext, 'pipelines' | 'shown'> as DocumentContext, asked)
}

const span = new Span()
/** One instance for all, as the tracer has it. */
function add(pipelines: ExportPipelines, name: string, ms = 1, failed = false, of = cart): void {
  span.traceId.fill(1)
  span.spanId.fill(2)
  span.name = name
  span.kind = SpanKind.server
  span.startUs = 1_000_000
  span.endUs = 1_000_000 + ms * 1000
  span.status = failed ? StatusCode.error : StatusCode.unset
  span.attributes.clear()
  span.attributes.add('url.path', '/users/ann@example.com')
  span.attributes.add('http.response.status_code', 200)
  pipelines.pipeline.intake('traces').add(of, scope, span)
}

const titles = (lines: readonly TapLine[]) =>
  lines.map(line => (line.kind === 'item' ? line.title : line.items))

test('items are told from the first look on, as they may be seen', async () => {
  const pipelines = pipelinesOf()
  const live = tapOf(pipelines)
  add(pipelines, 'GET /before')
  assert.deepEqual(await live.next(), [])
  add(pipelines, 'GET /users/ann@example.com', 12)
  const lines = await live.next()
  assert.deepEqual(lines, [
    {
      kind: 'item',
      signal: 'traces',
      time_ms: 1012,
      service: 'cart',
      title: 'GET /users/[email]',
      error: false,
      duration_ms: 12,
      detail: `server · url.path=/users/[email] http.response.status_code=200 · trace_id=${'01'.repeat(16)}`,
    },
  ])
  assert.deepEqual(await live.next(), [])
  live.close?.()
  add(pipelines, 'GET /after')
  assert.deepEqual(await live.next(), [])
})

test('only what was asked for is told', async () => {
  const pipelines = pipelinesOf()
  const check = async (query: Partial<TapQuery>, want: string[]) => {
    const live = tapOf(pipelines, query)
    await live.next()
    add(pipelines, 'fast')
    add(pipelines, 'slow', 300)
    add(pipelines, 'failed', 1, true)
    add(pipelines, 'other', 1, false, shop)
    assert.deepEqual(titles(await live.next()), want)
    live.close?.()
  }
  await check({}, ['fast', 'slow', 'failed', 'other'])
  await check({ min_ms: 200 }, ['slow'])
  await check({ errors: true }, ['failed'])
  await check({ service: 'shop' }, ['other'])
  await check({ service: 'cart', errors: true, min_ms: 2 }, [])
})

test('between two looks 200 items are kept, and the others are counted', async () => {
  const pipelines = pipelinesOf()
  const live = tapOf(pipelines)
  await live.next()
  for (let i = 0; i < 250; i++) add(pipelines, `GET /${i}`)
  const lines = await live.next()
  assert.equal(lines.length, 201)
  assert.deepEqual(titles(lines).slice(199), ['GET /199', 50])
  add(pipelines, 'later')
  assert.deepEqual(titles(await live.next()), ['later'])
  live.close?.()
})

test('the OTLP of an item is that of the item alone, without what may not be seen', async () => {
  const pipelines = pipelinesOf()
  const live = tapOf(pipelines, { otlp: true })
  await live.next()
  add(pipelines, 'GET /users/ann@example.com')
  add(pipelines, 'second', 1, false, shop)
  const lines = await live.next()
  const [first, second] = lines.map(line => (line.kind === 'item' ? (line.otlp as Request) : undefined))
  assert.ok(!JSON.stringify(lines).includes('ann@'), JSON.stringify(lines))
  const [spans] = first!.resourceSpans
  assert.deepEqual(
    spans!.scopeSpans.map(each => each.spans.map(({ name }) => name)),
    [['GET /users/[email]']],
  )
  assert.deepEqual(spans!.resource.attributes[0], { key: 'service.name', value: { stringValue: 'cart' } })
  assert.equal(second!.resourceSpans[0]!.scopeSpans[0]!.spans[0]!.name, 'second')
  // What the pipeline had stays what it was.
  assert.equal(span.attributes.get('url.path'), '/users/ann@example.com')
  live.close?.()
})

interface Request {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly unknown[] }
    readonly scopeSpans: readonly { readonly spans: readonly { readonly name: string }[] }[]
  }[]
}

test('large items do not make the OTLP that waits grow without bound', async () => {
  const pipelines = pipelinesOf()
  const live = tapOf(pipelines, { signal: 'logs', otlp: true })
  await live.next()
  const record = new LogRecord()
  const intake = pipelines.pipeline.intake('logs')
  for (let i = 0; i < 30; i++) {
    record.body = 'x'.repeat(200_000)
    intake.add(cart, scope, record)
  }
  const items = (await live.next()).filter(({ kind }) => kind === 'item')
  assert.equal(items.length, 1)
  assert.deepEqual(titles(await live.next()), [])
  live.close?.()
})

test('logs, metrics and profiles are told in words', async () => {
  const pipelines = pipelinesOf()
  const taps = (['logs', 'metrics', 'profiles'] as const).map(signal =>
    tapOf(pipelines, { signal, otlp: true }),
  )
  for (const live of taps) await live.next()
  const record = new LogRecord()
  record.observedUs = 2_000_000
  record.severity = 17
  record.severityText = 'ERROR'
  record.body = 'ann@example.com\nwas not found'
  pipelines.pipeline.intake('logs').add(cart, scope, record)
  const attributes = resource({ user: 'ann@example.com' }).attributes
  pipelines.pipeline.intake('metrics').add(cart, scope, {
    kind: 'gauge',
    name: 'queue.length',
    description: '',
    unit: '{item}',
    points: [{ attributes, startUs: 0, timeUs: 3_000_000, value: 7 }],
  })
  pipelines.pipeline.intake('profiles').add(cart, scope, {
    kind: 'cpu',
    unit: 'nanoseconds',
    startUs: 1_000_000,
    durationUs: 5_000_000,
    samples: [{ frames: [{ name: 'main', file: '', line: 0 }], value: 40, attributes }],
  })
  const lines = await Promise.all(taps.map(live => live.next()))
  assert.ok(!JSON.stringify(lines).includes('ann@'), JSON.stringify(lines))
  const told = lines.flat().map(line => {
    assert.equal(line.kind, 'item')
    const { otlp, ...rest } = line as Extract<TapLine, { kind: 'item' }>
    assert.ok(typeof otlp === 'object')
    return rest
  })
  const common = { kind: 'item', service: 'cart', error: false, duration_ms: null } as const
  assert.deepEqual(told, [
    {
      ...common,
      signal: 'logs',
      time_ms: 2000,
      title: '[email] was not found',
      error: true,
      detail: 'ERROR',
    },
    {
      ...common,
      signal: 'metrics',
      time_ms: 3000,
      title: 'queue.length',
      detail: 'gauge of 1 point · 7 {item} · user=[email]',
    },
    {
      ...common,
      signal: 'profiles',
      time_ms: 6000,
      title: 'cpu',
      duration_ms: 5000,
      detail: '1 stack, 40 nanoseconds',
    },
  ])
  for (const live of taps) live.close?.()
})

test('secrets are known by their names, and half a token is not shown for one that was cut', async () => {
  const pipelines = pipelinesOf()
  const live = tapOf(pipelines, { signal: 'logs', otlp: true }, shownText(defaults()))
  await live.next()
  const record = new LogRecord()
  const encoded = (text: string) => Buffer.from(text).toString('base64url')
  const claims = encoded(JSON.stringify({ email: 'ann@example.com', more: 'x'.repeat(3000) }))
  record.body = `refused ${encoded('{"alg":"HS256","typ":"JWT"}')}.${claims}.${encoded('x'.repeat(32))}`
  record.attributes.set('db.password', 'hunter2')
  record.attributes.set('http.request.header.cookie', ['sid=hunter3'])
  pipelines.pipeline.intake('logs').add(cart, scope, record)
  record.body = claims
  pipelines.pipeline.intake('logs').add(cart, scope, record)
  const lines = await live.next()
  const text = JSON.stringify(lines)
  assert.ok(!text.includes('hunter'), text)
  assert.deepEqual(titles(lines), ['refused', '[TRUNCATED-UNSCANNED]'])
  live.close?.()
})
