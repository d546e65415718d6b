// What the window of the live page adds to a span and to a request, in nanoseconds. A program of its own, for bench/ui.ts
// starts it with the flags that users run svc with.

import { Writer } from '../../src/foundation/lib/protobuf.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../src/foundation/model/span.ts'
import { traceEncoding } from '../../src/pipeline/exporters/otlp/encode-trace.ts'
import { EdgeWindow } from '../../src/view/window/edge-window.ts'
import { SpanWindow } from '../../src/view/window/span-window.ts'
import { report } from './figures.ts'

const count = Number(process.argv[2] ?? 200_000)
const runs = 7
/** As large as by default: their parts of 24 MiB. */
const common = { windowMs: 900_000, now: Date.now }
const spans = new SpanWindow({ ...common, maxBytes: 10.8 * 2 ** 20 })
const edges = new EdgeWindow({ ...common, maxBytes: 1.92 * 2 ** 20 })
const services = Array.from({ length: 20 }, (_, i) =>
  resource({ 'service.name': `service-${i}`, 'service.namespace': 'shop', 'process.pid': 1000 + i }),
)
const names = Array.from({ length: 50 }, (_, i) => `GET /api/v1/items/{id}/part-${i}`)

/** xorshift32 (Marsaglia 2003): the same numbers in each run. */
let state = 2_463_534_242
function random(): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return state >>> 0
}

const span = new Span()
span.kind = SpanKind.server
const attributes: readonly (readonly [string, string | number])[] = [
  ['http.request.method', 'GET'],
  ['http.route', '/api/v1/items/{id}'],
  ['http.response.status_code', 200],
  ['url.path', '/api/v1/items/1234'],
  ['url.scheme', 'http'],
  ['server.address', 'shop.example'],
  ['server.port', 8080],
  ['client.address', '10.0.0.2'],
  ['network.protocol.version', '1.1'],
  ['user_agent.original', 'Mozilla/5.0 (X11; Linux x86_64) Chrome/126.0'],
]
for (const [key, value] of attributes) span.attributes.add(key, value)

const ids = { trace: new DataView(span.traceId.buffer), span: new DataView(span.spanId.buffer) }
let told = 0

/** Four of a trace; each hundredth failed. */
function nextSpan(): void {
  const number = random()
  if (told++ % 4 === 0) ids.trace.setUint32(12, number)
  ids.span.setUint32(4, number)
  span.name = names[number % names.length]!
  span.endUs = Date.now() * 1000
  span.startUs = span.endUs - (number % 100_000)
  span.status = number % 100 === 0 ? StatusCode.error : StatusCode.unset
}

const request = {
  client: services[0]!,
  server: services[0]!,
  protocol: 'http',
  failed: false,
  clientNs: -1,
  serverNs: 0,
  clientAddress: '10.0.0.1',
  serverAddress: '10.0.0.1',
  serverPort: 80,
  probe: false,
}

const out = new Writer(1 << 21)
const works = {
  /** A span is encoded for its receiver anyway. */
  nothing: () => {
    nextSpan()
    if (out.length > 1 << 20) out.clear()
    traceEncoding.encode(out, span)
  },
  span: () => {
    nextSpan()
    if (out.length > 1 << 20) out.clear()
    const start = out.length
    traceEncoding.encode(out, span)
    spans.add(services[state & 15]!, span, { buffer: out.buffer, start, end: out.length })
  },
  edge: () => {
    works.nothing()
    request.client = services[(state >>> 4) & 15]!
    request.server = services[state & 3]!
    request.failed = span.status !== StatusCode.unset
    request.serverNs = state >>> 8
    edges.add(request)
  },
}
type Work = keyof typeof works

function nanoseconds(work: () => void): number {
  const began = process.hrtime.bigint()
  for (let i = 0; i < count; i++) work()
  return Number(process.hrtime.bigint() - began) / count
}

const times: Record<Work, number[]> = { nothing: [], span: [], edge: [] }
// The first run warms up, and fills what is overwritten from then on.
for (let run = 0; run <= runs; run++)
  for (const [name, work] of Object.entries(works)) {
    const ns = nanoseconds(work)
    if (run > 0) times[name as Work].push(ns)
  }
const beyondNothing = (name: Work) => times[name].map((ns, run) => ns - times.nothing[run]!)
report('ui.window.ns_per_span', beyondNothing('span'), 'ns', 'less', `${attributes.length} attributes`)
report('ui.window.ns_per_request', beyondNothing('edge'), 'ns', 'less')
report('ui.window.spans_mib', spans.bytes / 2 ** 20, 'MiB', 'less')
report('ui.window.edges_mib', edges.bytes / 2 ** 20, 'MiB', 'less')
report('ui.window.spans_kept', spans.kept, '{span}', 'more')
report('ui.window.edges_kept', edges.edges().length, '{edge}', 'more')
