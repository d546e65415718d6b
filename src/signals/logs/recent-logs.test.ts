import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { LogSearchQuery, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import { type Resource, resource } from '../../foundation/model/resource.ts'
import { RecentLogs } from './recent-logs.ts'

const containerId = 'c'.repeat(64)
const shop = resource({ 'service.name': 'shop', 'process.pid': 12, 'container.id': containerId })
const cron = resource({ 'service.name': 'cron' })
const inContainer = resource({ 'container.id': containerId })
const traceId = '0123456789abcdef0123456789abcdef'
const spanId = '0123456789abcdef'

interface Told {
  readonly timeUs?: number
  readonly observedUs?: number
  readonly severity?: number
  readonly trace?: string
  readonly span?: string
  readonly attributes?: Readonly<Record<string, string | number>>
}

const record = new LogRecord()

function tell(logs: RecentLogs, from: Resource, body: string, told: Told = {}): void {
  record.timeUs = told.timeUs ?? 0
  record.observedUs = told.observedUs ?? 0
  record.severity = told.severity ?? 0
  record.body = body
  record.traceId.fill(0)
  record.spanId.fill(0)
  record.traceId.set(Buffer.from(told.trace ?? '', 'hex'))
  record.spanId.set(Buffer.from(told.span ?? '', 'hex'))
  record.attributes.clear()
  for (const [key, value] of Object.entries(told.attributes ?? {})) record.attributes.set(key, value)
  logs.add(from, record)
}

const bodies = (logs: RecentLogs, query: Partial<RecentLogQuery> = {}) =>
  logs.find({ limit: 100, ...query }).map(({ body }) => body)

test('a record is found as it was, the newest first', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  tell(logs, shop, 'grüße 👋', { timeUs: 5.5, severity: 17, trace: traceId, span: spanId })
  tell(logs, cron, '', { observedUs: 7 })
  assert.deepEqual(logs.find({ limit: 10 }), [
    {
      timeUs: 7,
      severity: 0,
      body: '',
      traceId: '',
      spanId: '',
      pid: 0,
      containerId: '',
      service: 'cron',
    },
    { timeUs: 5.5, severity: 17, body: 'grüße 👋', traceId, spanId, pid: 12, containerId, service: 'shop' },
  ])
  assert.deepEqual(bodies(logs, { limit: 1 }), [''])
  assert.deepEqual(bodies(logs, { limit: 0 }), [])
})

test('what a record says of its process and container goes before what its resource says', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  tell(logs, shop, 'a', { attributes: { 'process.pid': 99, 'container.id': 'other' } })
  const [found] = logs.find({ limit: 1 })
  assert.deepEqual([found?.pid, found?.containerId, found?.service], [99, 'other', 'shop'])
  assert.deepEqual(bodies(logs, { containerId: 'other' }), ['a'])
  assert.deepEqual(bodies(logs, { containerId }), [])
})

test('each condition is kept, and all of them together', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  tell(logs, shop, 'one', { timeUs: 1000, severity: 9 })
  tell(logs, shop, 'two', { timeUs: 2000, severity: 17, span: spanId })
  tell(logs, cron, 'three', { timeUs: 3000, severity: 17 })
  const check = (query: Partial<RecentLogQuery>, want: string[]) =>
    assert.deepEqual(bodies(logs, query), want)
  check({ pid: 12 }, ['two', 'one'])
  check({ pid: 13 }, [])
  check({ containerId }, ['two', 'one'])
  check({ service: 'cron' }, ['three'])
  check({ minSeverity: 10 }, ['three', 'two'])
  check({ fromUs: 2000 }, ['three', 'two'])
  check({ toUs: 2000 }, ['two', 'one'])
  check({ fromUs: 1001, toUs: 2999 }, ['two'])
  check({ spanId }, ['two'])
  check({ pid: 12, minSeverity: 10, fromUs: 0, toUs: 5000, service: 'shop' }, ['two'])
  check({ pid: 12, service: 'cron' }, [])
})

test('to a span belong the records of its trace, and what its process wrote meanwhile and names no trace', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  const other = 'f'.repeat(32)
  tell(logs, cron, 'in the trace, from elsewhere', { timeUs: 9e9, trace: traceId })
  tell(logs, shop, 'of this span', { timeUs: 1000, trace: traceId, span: spanId })
  tell(logs, shop, 'of another span', { timeUs: 1000, trace: traceId, span: 'f'.repeat(16) })
  tell(logs, shop, 'of another trace', { timeUs: 1000, trace: other })
  tell(logs, shop, 'meanwhile', { timeUs: 1000 })
  tell(logs, inContainer, 'of the container', { timeUs: 1000 })
  tell(logs, shop, 'read a little later', { observedUs: 300_000 })
  tell(logs, shop, 'much later', { timeUs: 3e6 })
  tell(logs, cron, 'of another process', { timeUs: 1000, attributes: { 'process.pid': 13 } })
  const check = (query: Partial<RecentLogQuery>, want: string[]) =>
    assert.deepEqual(bodies(logs, query).reverse(), want)
  const named = ['in the trace, from elsewhere', 'of this span']
  check({ traceId }, [...named, 'of another span'])
  check({ traceId, spanId }, named)
  check({ traceId, spanId, pid: 12 }, named)
  const times = { fromUs: 500, toUs: 1500 }
  check({ traceId, spanId, pid: 12, ...times }, [...named, 'meanwhile', 'read a little later'])
  check({ traceId, spanId, pid: 12, containerId, ...times }, [
    ...named,
    'meanwhile',
    'of the container',
    'read a little later',
  ])
})

test('the oldest give way, and what is kept is whole', () => {
  const resources = Array.from({ length: 30 }, (_, i) =>
    resource({ 'service.name': `s${i}`, 'process.pid': i + 1, 'container.id': i % 2 ? `c${i}` : '' }),
  )
  const line = fc.record({
    from: fc.nat({ max: 29 }),
    length: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 9000 })),
    letter: fc.constantFrom('a', 'ß', '漢', '👋'),
  })
  fc.assert(
    fc.property(fc.array(line, { minLength: 50, maxLength: 400 }), lines => {
      const logs = new RecentLogs({ maxBytes: 256 * 1024 })
      const told: string[] = []
      for (const [n, { from, length, letter }] of lines.entries()) {
        const body = `${n} ${letter.repeat(length)}`
        told.push(body)
        tell(logs, resources[from]!, body, { timeUs: n + 1 })
        assert.ok(logs.bytes <= 192 * 1024)
      }
      const found = logs.find({ limit: 1e6 })
      assert.equal(found.length, logs.size)
      assert.ok(found.length >= Math.min(lines.length, 40))
      for (const [age, { body, service, pid, timeUs }] of found.entries()) {
        const n = lines.length - 1 - age
        const { from } = lines[n]!
        assert.deepEqual([service, pid, timeUs], [`s${from}`, from + 1, n + 1])
        assert.ok(told[n]!.startsWith(body))
        assert.ok(body === told[n] || Buffer.byteLength(body) > 4096 - 4)
        assert.ok(!body.includes('\ufffd'))
      }
    }),
    { numRuns: soak ? 500 : 30 },
  )
})

test('more resources than there is room for cost the oldest records, and their places are used again', () => {
  const logs = new RecentLogs({ maxBytes: 256 * 1024 })
  for (let i = 0; i < 10_000; i++) {
    const from = resource({ 'service.name': `s${i}` })
    tell(logs, from, `a ${i}`)
    tell(logs, from, `b ${i}`)
  }
  assert.deepEqual(bodies(logs, { limit: 3 }), ['b 9999', 'a 9999', 'b 9998'])
  assert.equal(logs.size, 128)
  assert.deepEqual(bodies(logs, { service: 's9990' }), ['b 9990', 'a 9990'])
})

test('a text is looked for in bodies, together with all else', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  tell(logs, shop, 'GET /Cart failed', { severity: 17 })
  tell(logs, cron, 'get /cart', { severity: 9 })
  tell(logs, cron, 'nothing', { attributes: { 'container.id': 'get /cart' } })
  assert.deepEqual(bodies(logs, { text: 'get /CART' }), ['get /cart', 'GET /Cart failed'])
  assert.deepEqual(bodies(logs, { text: 'get /cart', minSeverity: 10 }), ['GET /Cart failed'])
  assert.deepEqual(bodies(logs, { text: 'get /cart', service: 'cron' }), ['get /cart'])
  assert.deepEqual(bodies(logs, { text: 'cartg' }), [])
})

test('numbers rise, and who knows one finds what came after it', () => {
  const logs = new RecentLogs({ maxBytes: 256 * 1024 })
  assert.deepEqual([logs.firstId, logs.lastId], [1, 0])
  for (let i = 1; i <= 5000; i++) tell(logs, i % 2 === 0 ? shop : cron, `${i} ${'x'.repeat(100)}`)
  assert.equal(logs.lastId, 5000)
  assert.equal(logs.firstId, 5001 - logs.size)
  const check = (query: Partial<LogSearchQuery>, want: number[], matched: number) => {
    const search = logs.search({ limit: 3, ...query })
    assert.equal(search.goOn(Number.POSITIVE_INFINITY), true)
    assert.deepEqual(
      search.found.map(({ id }) => id),
      want,
    )
    assert.ok(search.found.every(({ id, body }) => body.startsWith(`${id} `)))
    assert.equal(search.matched, matched)
  }
  check({}, [5000, 4999, 4998], logs.size)
  check({ afterId: 4998 }, [5000, 4999], 2)
  check({ afterId: 4990 }, [5000, 4999, 4998], 10)
  check({ afterId: 4990, service: 'cron' }, [4999, 4997, 4995], 5)
  check({ afterId: 5000 }, [], 0)
  check({ afterId: 4000, text: '4001 X' }, [4001], 1)
})

test('a histogram counts what fits by level and time', () => {
  const logs = new RecentLogs({ maxBytes: 1 << 20 })
  for (const [timeUs, severity] of [
    [999, 9],
    [1000, 9],
    [1999, 12],
    [2000, 0],
    [3999, 24],
    [4000, 21],
    [3000, 1],
  ] as const)
    tell(logs, shop, 'a', { timeUs, severity })
  const search = logs.search({ limit: 0, histogram: { fromUs: 1000, stepUs: 1000, columns: 3 } })
  search.goOn(Number.POSITIVE_INFINITY)
  assert.equal(search.matched, 7)
  assert.deepEqual(
    [...search.counts],
    [
      [0, 1, 0],
      [0, 0, 1],
      [0, 0, 0],
      [2, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 1],
    ].flat(),
  )
})

test('a search goes on in slices while records come and go', () => {
  const logs = new RecentLogs({ maxBytes: 256 * 1024 })
  for (let i = 1; i <= 1000; i++) tell(logs, shop, `${i}`)
  const search = logs.search({ limit: 1e6 })
  let slices = 0
  while (!search.goOn(0)) {
    slices++
    for (let i = 0; i < 100; i++) tell(logs, cron, 'x'.repeat(1000))
  }
  assert.ok(slices > 1)
  assert.equal(search.found[0]?.body, '1000')
  assert.ok(search.found.every(({ id, body, service }) => body === `${id}` && service === 'shop'))
  assert.ok(search.found.length < 1000, 'the oldest gave way meanwhile')
})

test('services are told while there are records of them', () => {
  const logs = new RecentLogs({ maxBytes: 256 * 1024 })
  tell(logs, shop, 'a')
  tell(logs, inContainer, 'a')
  tell(logs, cron, 'a')
  assert.deepEqual(logs.services(), ['cron', 'shop'])
  for (let i = 0; i < 100; i++) tell(logs, cron, 'x'.repeat(4000))
  assert.deepEqual(logs.services(), ['cron'])
})

test('an answer is bounded, whatever is asked for', () => {
  const logs = new RecentLogs({ maxBytes: 4 << 20 })
  for (let i = 0; i < 2000; i++) tell(logs, shop, 'x'.repeat(100_000))
  assert.ok(logs.size > 500)
  assert.equal(logs.find({ limit: 1e9 }).length, 256)
})

test('a record takes a microsecond', t => {
  const logs = new RecentLogs({ maxBytes: 4 << 20 })
  const body =
    'GET /api/users/12345 200 12ms user-agent="Mozilla/5.0 (X11; Linux x86_64)" referer="-"'.repeat(2)
  tell(logs, shop, body, { timeUs: 1, severity: 9, trace: traceId, span: spanId })
  const round = () => {
    const began = performance.now()
    for (let i = 0; i < 50_000; i++) logs.add(shop, record)
    return ((performance.now() - began) / 50_000) * 1000
  }
  const times = [round(), round(), round(), round(), round()]
  const began = performance.now()
  logs.find({ traceId: 'f'.repeat(32), limit: 100 })
  t.diagnostic(
    `${Math.min(...times).toFixed(2)} µs a record, ${(performance.now() - began).toFixed(2)} ms a search`,
  )
})
