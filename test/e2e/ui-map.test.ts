// owns: host
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type {
  MapLine,
  MetricsDocument,
  SeriesLine,
  ServiceLine,
  TraceDocument,
  TracesLine,
} from '../../src/view/api/ui/documents.ts'
import { mapLine, seriesLine, serviceLine, traceDocument } from '../../src/view/api/ui/host-documents.ts'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { checkShape } from '../helpers/document-shape.ts'
import { type LiveShop, startLiveShop } from '../helpers/live-shop.ts'
import { until } from '../helpers/program.ts'
import { withoutPostgres } from '../helpers/servers/postgres.ts'
import { withoutRedis } from '../helpers/servers/redis.ts'

const skip = withoutBpf || withoutRedis || withoutPostgres

let shop: LiveShop
let agent: AgentProcess

before(async () => {
  if (skip) return
  agent = await AgentProcess.start()
  shop = await startLiveShop(5)
})

after(async () => {
  await agent?.stop()
  await shop?.close()
})

/** Edges as `from > to protocol`, by names. */
function edgesOf({ nodes, edges }: MapLine): string[] {
  const name = (id: string) => nodes.find(node => node.id === id)?.name
  return edges.map(({ from, to, protocol }) => `${name(from)} > ${name(to)} ${protocol}`)
}

test('the map shows a shop from its front to its stores', { skip }, async () => {
  const wanted = /^(.+ > nginx http|nginx > .+ http|.+ > redis-server redis|.+ > postgres postgresql)$/
  let line: MapLine | undefined
  await until(
    () => `the map shows all: ${line === undefined ? 'nothing' : edgesOf(line).join(', ')}`,
    60_000,
    async () => {
      line = await agent.document<MapLine>('/ui/api/map')
      return new Set(edgesOf(line).filter(edge => wanted.test(edge))).size >= 4
    },
  )
  checkShape(mapLine, line!)
  const kinds = new Map(line!.nodes.map(({ name, kind }) => [name, kind]))
  assert.equal(kinds.get('redis-server'), 'store')
  assert.equal(kinds.get('postgres'), 'store')
  assert.equal(kinds.get('nginx'), 'service')
  const ids = new Set(line!.nodes.filter(({ kind }) => kind === 'store').map(({ id }) => id))
  for (const { to, requests_per_s, p50_ms, p95_ms } of line!.edges) {
    if (!ids.has(to)) continue
    assert.ok(requests_per_s > 0)
    assert.ok(p50_ms! > 0 && p95_ms! >= p50_ms!)
  }
})

test('a trace of the list opens, and so does a metric of the page', { skip }, async () => {
  let id: string | undefined
  await until('a trace is there', 60_000, async () => {
    const { traces } = await agent.document<TracesLine>('/ui/api/traces?service=nginx')
    id = traces[0]?.trace_id
    return id !== undefined
  })
  const trace = await agent.document<TraceDocument>(`/ui/api/trace?id=${id}`)
  checkShape(traceDocument, trace)
  assert.equal(trace.trace_id, id)
  assert.ok(trace.spans.some(({ service }) => service === 'nginx'))
  const { sections } = await agent.document<MetricsDocument>('/ui/api/metrics')
  const { name } = sections.find(({ name }) => name === 'svc')!.families.find(({ series }) => series === 1)!
  const { status, text } = await agent.get(`/ui/api/series?name=${name}`)
  assert.equal(status, 200, text)
  // A gauge has its first reading on a second line.
  const line = JSON.parse(text.split('\n')[0]!) as SeriesLine
  checkShape(seriesLine, line)
  assert.ok(line.kind === 'start' && line.family.name === name && line.series.length === 1)
})

test('a service has a page with what is asked of it and whom it asks', { skip }, async () => {
  let line: ServiceLine | undefined
  await until(
    () => `the service is told: ${JSON.stringify(line)}`,
    60_000,
    async () => {
      line = await agent.document<ServiceLine>('/ui/api/service?name=nginx')
      const { service, routes, callees, requests_per_s: rates } = line
      // A column that has only just begun is not told.
      return service.serves && routes.length > 0 && callees.length > 0 && rates.some(rate => rate! > 0)
    },
  )
  checkShape(serviceLine, line!)
  assert.deepEqual(line!.service.protocols, ['http'])
  assert.equal(line!.resource['service.name'], 'nginx')
  assert.ok(line!.p95_ms.some(ms => ms !== null && ms > 0))
})
