import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { settings } from '../../../test/helpers/api-server.ts'
import { call, type Reply } from '../../../test/helpers/http.ts'
import { Api as Description } from '../../../test/helpers/openapi.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import type { RecentLog, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import { openapi } from './openapi.ts'
import { recentLogs } from './recent-logs.ts'
import { startApi } from './server.ts'
import type { AgentView } from './types.ts'

const log = createLogger({ level: 'error', format: 'json', write: () => undefined })
const traceId = '0123456789abcdef0123456789abcdef'
const spanId = '0123456789abcdef'
const noon = Date.UTC(2026, 0, 31, 12) * 1000

const plain: RecentLog = {
  timeUs: noon,
  severity: 9,
  body: 'it works',
  traceId: '',
  spanId: '',
  pid: 12,
  containerId: '',
  service: 'shop',
}

async function serve(t: TestContext, find: (query: RecentLogQuery) => readonly RecentLog[]) {
  const all = [recentLogs({ recentLogs: find } as unknown as AgentView)]
  const api = await startApi({ settings, operations: all, log, peerUser })
  t.after(() => api.close())
  const description = new Description(JSON.parse(JSON.stringify(openapi(all))))
  const { operation } = description.operations()[0]!
  return async (query: string, headers: Record<string, string> = {}): Promise<Reply> => {
    const reply = await call(api.port, `/logs${query}`, { headers: headers as never })
    description.check(operation, reply)
    return reply
  }
}

test('what is asked for is what the query says', async t => {
  const asked: RecentLogQuery[] = []
  const get = await serve(t, query => {
    asked.push(query)
    return []
  })
  const check = async (query: string, want: RecentLogQuery) => {
    const reply = await get(query)
    assert.equal(reply.status, 200, reply.body.toString())
    assert.deepEqual(asked.at(-1), want)
  }
  await check('', { limit: 100, minSeverity: 0 })
  await check(`?trace_id=${traceId.toUpperCase()}&span_id=${spanId}&limit=5`, {
    limit: 5,
    minSeverity: 0,
    traceId,
    spanId,
  })
  await check('?pid=12&container=abc&service=a%20b&min_severity=17', {
    limit: 100,
    minSeverity: 17,
    pid: 12,
    containerId: 'abc',
    service: 'a b',
  })
  await check('?from=2026-01-31T12:00:00Z&to=2026-01-31T13:00:00.000001999%2B01:00', {
    limit: 100,
    minSeverity: 0,
    fromUs: noon,
    toUs: noon + 1,
  })
})

test('records are told with the names of their severities and times to the microsecond', async t => {
  const records = [
    plain,
    { ...plain, severity: 18, timeUs: noon + 1234.5, traceId, spanId, containerId: 'abc' },
  ]
  const get = await serve(t, () => [...records, { ...plain, severity: 0, timeUs: Number.NaN }])
  const reply = await get('')
  const told = JSON.parse(reply.body.toString()).records
  assert.deepEqual(told[0], {
    time: '2026-01-31T12:00:00.000000Z',
    severity: 'INFO',
    severity_number: 9,
    body: 'it works',
    trace_id: '',
    span_id: '',
    pid: 12,
    container: '',
    service: 'shop',
  })
  const { time, severity, trace_id, span_id, container } = told[1]
  assert.deepEqual(
    [time, severity, trace_id, span_id, container],
    ['2026-01-31T12:00:00.001234Z', 'ERROR2', traceId, spanId, 'abc'],
  )
  assert.deepEqual([told[2].severity, told[2].time], ['', null])
})

test('what is wrong with the query is refused before anything is looked for', async t => {
  const get = await serve(t, () => assert.fail('it was asked'))
  const check = async (query: string, message: RegExp) => {
    const reply = await get(query)
    assert.equal(reply.status, 400)
    assert.match(JSON.parse(reply.body.toString()).message, message)
  }
  await check('?trace_id=abc', /"trace_id" must be 32 hexadecimal digits/)
  await check(`?trace_id=${traceId}%0A`, /"trace_id" must be 32 hexadecimal digits/)
  await check(`?span_id=${traceId}`, /"span_id" must be 16 hexadecimal digits/)
  await check('?from=yesterday', /"from" must be a time such as 2026-01-31T12:00:00.000Z/)
  await check('?to=2026-13-31T12:00:00Z', /"to" must be a time such as/)
  await check('?to=2026-01-31T12:00:00', /"to" must be a time such as/)
  await check('?limit=1001', /"limit" must be a whole number from 1 to 1000/)
  await check('?traceid=1', /unknown parameter "traceid"; did you mean trace_id\?/)
})

test('without a token logs are for this host, and for no web page of another origin', async t => {
  const get = await serve(t, () => assert.fail('it was asked'))
  for (const headers of [{ Origin: 'https://evil.example' }, { Host: 'evil.example' }])
    assert.equal((await get('', { ...headers } as Record<string, string>)).status, 403)
})
