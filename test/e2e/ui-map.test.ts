// owns: host
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { MapLine, ServiceLine } from '../../src/api/ui/documents.ts'
import { mapLine, serviceLine } from '../../src/api/ui/look-shapes.ts'
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
