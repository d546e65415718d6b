import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AskedWindow, named } from '../../../test/helpers/asked-window.ts'
import { checkShape } from '../../../test/helpers/document-shape.ts'
import { encodedSpan } from '../../../test/helpers/encoded-span.ts'
import { Span, SpanKind } from '../../foundation/model/span.ts'
import type { ServiceLine } from '../../view/api/ui/documents.ts'
import { serviceLine as shape } from '../../view/api/ui/host-documents.ts'
import { service } from './service.ts'
import { servicePasts, services } from './services.ts'

const shop = named('shop', { 'host.name': 'secret-host', 'process.pid': 17 })
const cart = named('cart')

async function lineOf(asked: AskedWindow, name: string): Promise<ServiceLine> {
  const [line] = await service(asked.parts, name).next()
  checkShape(shape, line!)
  return line!
}

test('a service that was not seen is not found', async () => {
  const line = await lineOf(new AskedWindow(), 'shop')
  assert.equal(line.found, false)
  assert.equal(line.service.name, 'shop')
  assert.equal(line.no_data_reason, '')
})

test('where nothing traces it says why, with the hint', async () => {
  const { parts } = new AskedWindow()
  const tracing = { reason: 'the kernel has no BTF', hint: '' }
  const [line] = await service({ ...parts, tracing }, 'shop').next()
  assert.equal(line!.no_data_reason, 'Tracing is not running: the kernel has no BTF; run svc doctor traces.')
})

test('a service has its course, its neighbours and its resource', async () => {
  const asked = new AskedWindow()
  const beginMs = asked.nowMs
  for (let second = 0; second < 60; second++) {
    for (let i = 0; i < 4; i++) asked.ask({ client: '192.0.2.9', server: shop, failed: i === 0, ms: 30 })
    asked.ask({ client: shop, server: cart })
    asked.ask({ client: shop, server: '10.0.0.5', port: 6379, protocol: 'redis' })
    asked.nowMs += 1000
  }
  const line = await lineOf(asked, 'shop')
  assert.equal(line.found, true)
  assert.equal(line.from_ms, beginMs)
  assert.equal(line.step_ms, 10_000)
  assert.deepEqual(line.requests_per_s, Array(6).fill(4))
  assert.deepEqual(line.errors_per_s, Array(6).fill(1))
  assert.ok(line.p95_ms.every(ms => ms !== null && ms > 20 && ms < 43))
  assert.deepEqual(line.callers, [{ name: '192.0.2.9', requests_per_s: 4 }])
  assert.deepEqual(line.callees.map(({ name }) => name).sort(), ['cart', 'redis (10.0.0.5:6379)'])
  assert.deepEqual(line.resource, {
    'service.name': 'shop',
    'host.name': '[REDACTED]-host',
    'process.pid': 17,
  })
  assert.equal(line.service.serves, true)
  assert.deepEqual(line.service.protocols, ['http'])
  assert.equal(line.service.errors_percent, 25)
  const { callers, service: row } = await lineOf(asked, 'cart')
  assert.deepEqual(callers, [{ name: 'shop', requests_per_s: 1 }])
  assert.equal(row.requests_per_s, 1)
})

test('what is asked of a service is told by the names of its spans', async () => {
  const asked = new AskedWindow()
  asked.ask({ client: '192.0.2.9', server: shop })
  const span = new Span()
  for (const [i, name] of ['GET /cart', 'GET /secret', 'GET /cart'].entries()) {
    span.name = name
    span.kind = SpanKind.server
    span.startUs = asked.nowMs * 1000
    span.endUs = span.startUs + 1000 * (i + 1)
    span.traceId.fill(i + 1)
    span.spanId.fill(i + 1)
    asked.spans.add(shop, span, encodedSpan(span))
  }
  const { routes } = await lineOf(asked, 'shop')
  const [first, second] = routes
  assert.equal(routes.length, 2)
  assert.deepEqual([first!.name, first!.spans, first!.trace_id], ['GET /cart', 2, '03'.repeat(16)])
  assert.ok(Math.abs(first!.slowest_ms - 3) < 0.01)
  assert.equal(second!.name, 'GET /[REDACTED]')
})

test('a store that is only seen from its clients has a page where its service is known', async () => {
  const asked = new AskedWindow([{ name: 'redis-server', ports: [6379] }])
  for (let i = 0; i < 5; i++) asked.ask({ client: shop, server: '127.0.0.1', port: 6379, protocol: 'redis' })
  const line = await lineOf(asked, 'redis-server')
  assert.equal(line.found, true)
  assert.deepEqual(line.service.protocols, ['redis'])
  assert.deepEqual(line.callers, [{ name: 'shop', requests_per_s: 5 }])
  assert.deepEqual(line.resource, {})
})

test('between containers the requests of a service are counted once', async () => {
  const asked = new AskedWindow()
  for (let i = 0; i < 5; i++) {
    asked.ask({ client: shop, server: '172.30.0.3', port: 80, at: '172.30.0.2' })
    asked.ask({ client: '172.30.0.2', server: cart, at: '172.30.0.3' })
  }
  asked.nowMs += 5000
  assert.deepEqual((await lineOf(asked, 'cart')).requests_per_s, [1])
  assert.deepEqual((await lineOf(asked, 'shop')).requests_per_s, [1])
})

test('services come the worst first: errors, then slowness, then requests', () => {
  const asked = new AskedWindow()
  const beginMs = asked.nowMs
  for (let second = 0; second < 300; second++) {
    const isLate = second >= 240
    asked.ask({ client: '192.0.2.9', server: named('idle') })
    for (let i = 0; i < 3; i++) asked.ask({ client: '192.0.2.9', server: named('busy') })
    asked.ask({ client: '192.0.2.9', server: named('slow'), ms: isLate ? 900 : 30 })
    asked.ask({ client: '192.0.2.9', server: named('failing'), failed: isLate })
    asked.ask({ client: named('job'), server: '10.0.0.5', port: 5432, protocol: 'postgres' })
    asked.nowMs = beginMs + (second + 1) * 1000
  }
  const rows = services(asked.parts)
  assert.deepEqual(
    rows.map(({ name }) => name),
    ['failing', 'slow', 'busy', 'idle', 'job'],
  )
  const [failing, slow, busy, , job] = rows
  assert.equal(failing!.errors_percent, 100)
  assert.ok(Math.abs(busy!.requests_per_s - 3) < 0.2)
  assert.ok(slow!.p95_ms! > 600)
  const usual = servicePasts(asked.parts)[1]!.usualP95Ms!
  assert.ok(usual > 20 && usual < 43, String(usual))
  assert.deepEqual(
    [job!.serves, job!.protocols, job!.dependencies],
    [false, ['postgresql'], ['postgresql (10.0.0.5:5432)']],
  )
  for (const { trend } of rows) assert.equal(trend.length, 30)
  assert.ok(Math.abs(busy!.trend.at(-2)! - 3) < 0.01)
  assert.equal(busy!.trend[0], 0)
})

test('a service that has fallen silent stays in the list for the window', () => {
  const asked = new AskedWindow()
  asked.ask({ client: '192.0.2.9', server: shop })
  asked.nowMs += 600_000
  const [row] = services(asked.parts)
  assert.deepEqual([row!.name, row!.requests_per_s, row!.p95_ms], ['shop', 0, null])
  asked.nowMs += 400_000
  assert.deepEqual(services(asked.parts), [])
})
