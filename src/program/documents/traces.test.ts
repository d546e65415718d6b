import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodedSpan } from '../../../test/helpers/encoded-span.ts'
import { Api } from '../../../test/helpers/openapi.ts'
import { type Config, defaults } from '../../config/index.ts'
import { resource } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import { traceDocument, tracesLine } from '../../view/api/ui/host-documents.ts'
import type { TracesQuery } from '../../view/api/ui/source.ts'
import { SpanWindow } from '../../view/window/span-window.ts'
import { Tracing } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import { shownText } from './shown-text.ts'
import { trace, traces } from './traces.ts'

const shop = resource({
  'service.name': 'shop',
  'process.pid': 12,
  'process.command_line': 'node shop.js --owner jane@example.com',
  'process.command_args': ['node', 'jane@example.com'],
})
const everything: TracesQuery = {
  service: '',
  errors: false,
  min_ms: 0,
  max_ms: 0,
  q: '',
  since_ms: 0,
  until_ms: 0,
  sort: 'new',
  limit: 50,
}
const referee = new Api({
  paths: {},
  components: {
    responses: {},
    schemas: { TracesLine: tracesLine.json, Trace: traceDocument.json },
  },
})

/** What the page gets of a document, which is as it is described. */
function sent<T>(name: string, document: T): T {
  const body = Buffer.from(JSON.stringify(document))
  const type = 'application/json'
  const schema = { $ref: `#/components/schemas/${name}` }
  const headers = { 'content-type': type, 'content-length': String(body.length) }
  const responses = { 200: { content: { [type]: { schema } } } }
  referee.check({ operationId: name, tags: [], responses }, { status: 200, headers, body })
  return JSON.parse(body.toString()) as T
}

function started(change: Partial<DocumentContext> = {}, config: Config = defaults()) {
  const spans = new SpanWindow({ maxBytes: 1 << 20, windowMs: 900_000, now: Date.now })
  const window = { spans } as unknown as DocumentContext['window']
  const loaded = () => ({ config }) as ReturnType<DocumentContext['loaded']>
  const parts = { window, loaded, shown: shownText(config), tracing: undefined, ...change } as DocumentContext
  return { parts, spans }
}

/** One for all, so that what is told of them at two times is the same. */
const nowMs = Date.now()

function tell(spans: SpanWindow, change: (span: Span) => void): void {
  const span = new Span()
  span.traceId.fill(0xab)
  span.spanId.fill(1)
  span.name = 'GET /users/jane@example.com'
  span.kind = SpanKind.server
  span.endUs = nowMs * 1000
  span.startUs = span.endUs - 20_000
  change(span)
  spans.add(shop, span, encodedSpan(span))
}

const id = 'ab'.repeat(16)

test('traces are listed as the API describes them, without personal data', () => {
  const { parts, spans } = started()
  tell(spans, span => {
    span.status = StatusCode.error
  })
  const before = Date.now()
  const [line] = traces(parts, everything).next() as [never]
  const { heatmap, traces: listed, ...rest } = sent<ReturnType<typeof first>>('TracesLine', line)
  assert.deepEqual(
    listed.map(({ start_ms, ...each }) => each),
    [
      {
        trace_id: id,
        name: 'GET /users/[REDACTED]',
        service: 'shop',
        services: ['shop'],
        duration_ms: 20,
        spans: 1,
        errors: 1,
        retained: 'error',
      },
    ],
  )
  assert.equal(heatmap.counts.length, heatmap.columns * (heatmap.bounds_ms.length + 1))
  assert.equal(
    heatmap.counts.reduce((a, b) => a + b),
    1,
  )
  assert.equal(
    heatmap.errors.reduce((a, b) => a + b),
    1,
  )
  const { from_ms, to_ms, ...told } = rest
  assert.equal(to_ms - from_ms, 900_000)
  assert.ok(to_ms > before - 1000)
  assert.deepEqual(told, {
    services: ['shop'],
    matched: 1,
    spans_seen: 1,
    spans_retained: 1,
    no_data_reason: '',
  })
})

const first = (parts: DocumentContext, query = everything) => {
  const [line] = traces(parts, query).next() as Awaited<ReturnType<ReturnType<typeof traces>['next']>>
  return line!
}

test('a line comes only where something changed', () => {
  const { parts, spans } = started()
  const live = traces(parts, everything)
  assert.equal((live.next() as unknown[]).length, 1)
  // A column may begin meanwhile.
  const again = [live.next(), live.next()] as unknown[][]
  assert.ok(again.some(lines => lines.length === 0))
  tell(spans, () => {})
  assert.equal((live.next() as unknown[]).length, 1)
})

test('the question holds', () => {
  const { parts, spans } = started()
  tell(spans, () => {})
  const check = (query: Partial<TracesQuery>, want: number) =>
    assert.equal(first(parts, { ...everything, ...query }).matched, want)
  check({ service: 'shop', min_ms: 20, max_ms: 20, q: 'USERS', since_ms: 60_000 }, 1)
  check({ service: 'cart' }, 0)
  check({ errors: true }, 0)
  check({ min_ms: 21 }, 0)
  check({ max_ms: 19 }, 0)
  check({ q: 'jane' }, 0)
  check({ until_ms: 60_000 }, 0)
})

test('a trace is told as the API describes it, without personal data', () => {
  const { parts, spans } = started()
  tell(spans, () => {})
  tell(spans, span => {
    span.spanId.fill(2)
    span.parentSpanId.fill(1)
    span.kind = SpanKind.client
    span.flags = 0x101
    span.startUs += 5000
    span.name = 'GET'
    span.status = StatusCode.error
    span.statusMessage = 'no mail to jane@example.com'
    span.attributes.add('server.port', 6379)
    span.attributes.add('db.query.text', 'SET mail jane@example.com')
    span.attributes.add('tags', ['jane@example.com', 'b'])
    span.attributes.add('db.password', 'hunter2')
    span.attributes.add('__proto__', 'x')
  })
  const found = sent('Trace', trace(parts, id)!)
  assert.deepEqual([found.trace_id, found.duration_ms, found.omitted], [id, 20, 0])
  assert.deepEqual(found.resources, [
    {
      'service.name': 'shop',
      'process.pid': 12,
      'process.command_line': 'node shop.js --owner [REDACTED]',
      'process.command_args': ['node', '[REDACTED]'],
    },
  ])
  const [root, call] = found.spans
  assert.deepEqual(root, {
    span_id: '01'.repeat(8),
    parent_id: '',
    estimated_parent: false,
    name: 'GET /users/[REDACTED]',
    kind: 'server',
    resource: 0,
    service: 'shop',
    pid: 12,
    start_ms: 0,
    duration_ms: 20,
    error: false,
    status_message: '',
    attributes: {},
  })
  const { attributes, ...rest } = call!
  assert.deepEqual(Object.entries(attributes), [
    ['server.port', 6379],
    ['db.query.text', 'SET mail [REDACTED]'],
    ['tags', ['[REDACTED]', 'b']],
    ['db.password', '[REDACTED]'],
    ['__proto__', 'x'],
  ])
  assert.deepEqual(
    [rest.parent_id, rest.estimated_parent, rest.start_ms, rest.error, rest.status_message],
    [root!.span_id, true, 5, true, 'no mail to [REDACTED]'],
  )
  assert.equal(trace(parts, 'cd'.repeat(16)), undefined)
  assert.equal(trace(parts, 'no id'), undefined)
})

test('where there are no traces it says why, with the hint', () => {
  const check = (change: Partial<DocumentContext>, config: Config, want: RegExp) => {
    const { parts } = started(change, config)
    const line = first(parts)
    sent('TracesLine', line)
    assert.match(line.no_data_reason, want)
  }
  const config = defaults()
  const { ebpf } = config.agent
  const ebpfWith = (change: object): Config => ({
    ...config,
    agent: { ...config.agent, ebpf: { ...ebpf, ...change } },
  })
  const fault = { reason: 'the kernel has no BTF', hint: 'boot a kernel with CONFIG_DEBUG_INFO_BTF' }
  check({ tracing: fault }, config, /^Tracing is not running: the kernel has no BTF; boot a kernel/)
  check({}, { ...config, mode: 'collector' }, /mode is collector; set mode: agent and restart svc/)
  check(
    {},
    ebpfWith({ enabled: false }),
    /agent\.ebpf\.enabled is false; set agent\.ebpf\.enabled: true and restart svc\.$/,
  )
  check({}, ebpfWith({ network: { ...ebpf.network, enabled: false } }), /agent\.ebpf\.network\.enabled/)
  check({}, config, /restart svc\.$/)
  const tracing = Object.create(Tracing.prototype) as Tracing
  const sampling = { ...ebpf.network.sampling, ratio: 0, always_errors: false, always_slow: false }
  check({ tracing }, ebpfWith({ network: { ...ebpf.network, sampling } }), /sampling\.ratio is 0; set it/)
  check({ tracing }, config, /^$/)
  const { parts, spans } = started()
  tell(spans, () => {})
  assert.equal(first(parts).no_data_reason, '')
})
