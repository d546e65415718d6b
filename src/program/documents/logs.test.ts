import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { resource } from '../../foundation/model/resource.ts'
import { RecentLogs } from '../../signals/logs/recent-logs.ts'
import type { LogsLine } from '../../view/api/ui/documents.ts'
import type { LogsQuery } from '../../view/api/ui/source.ts'
import type { DocumentContext } from './document-context.ts'
import { logs } from './logs.ts'

const shop = resource({ 'service.name': 'shop', 'process.pid': 12, 'container.id': 'c1' })
const cron = resource({ 'service.name': 'cron' })
const all: LogsQuery = { service: '', min_severity: 0, q: '', trace_id: '', pid: 0, limit: 100 }
const windowMs = 900_000

function open(env: Record<string, string> = {}, files = 0) {
  const nowhere = '/nonexistent'
  const loaded = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(loaded.problems, [])
  const recent = new RecentLogs({ maxBytes: 256 * 1024 })
  const record = new LogRecord()
  const parts = {
    loaded: () => loaded,
    logs: { recent, faults: [], counts: { enabled: true, files } },
    window: { windowMs },
    shown: (text: string) => text.replaceAll('secret', '*'),
  } as unknown as DocumentContext
  return {
    parts,
    tell: (from: typeof shop, body: string, severity = 9, timeMs = Date.now()) => {
      record.timeUs = timeMs * 1000
      record.severity = severity
      record.body = body
      recent.add(from, record)
    },
  }
}

async function next(live: ReturnType<typeof logs>): Promise<LogsLine> {
  const lines = await live.next()
  assert.equal(lines.length, 1)
  return lines[0]!
}

async function start(live: ReturnType<typeof logs>): Promise<Extract<LogsLine, { kind: 'start' }>> {
  const line = await next(live)
  assert.ok(line.kind === 'start')
  return line
}

async function records(live: ReturnType<typeof logs>): Promise<Extract<LogsLine, { kind: 'records' }>> {
  const line = await next(live)
  assert.ok(line.kind === 'records')
  return line
}

test('the first line has the past, and each further one what came since', async () => {
  const { parts, tell } = open()
  const before = Date.now()
  tell(shop, 'one secret', 9, before)
  tell(cron, 'two', 17, before - 2 * windowMs)
  const live = logs(parts, all)
  const past = await start(live)
  assert.deepEqual(past.records, [
    {
      id: 1,
      time_ms: before,
      severity: 9,
      body: 'one *',
      service: 'shop',
      pid: 12,
      container: 'c1',
      trace_id: '',
      span_id: '',
    },
    {
      id: 2,
      time_ms: before - 2 * windowMs,
      severity: 17,
      body: 'two',
      service: 'cron',
      pid: 0,
      container: '',
      trace_id: '',
      span_id: '',
    },
  ])
  assert.deepEqual([past.services, past.no_data_reason], [['cron', 'shop'], ''])
  const { from_ms, step_ms, levels } = past.histogram
  const sums = levels.map(({ level, counts }) => [level, counts.length, counts.reduce((a, b) => a + b, 0)])
  // What was written before the window is in no column.
  assert.deepEqual(
    sums.filter(([, , sum]) => sum !== 0),
    [['info', 60, 1]],
  )
  assert.equal(levels[3]?.counts[Math.floor((before - from_ms) / step_ms)], 1)
  assert.deepEqual(await live.next(), [])
  tell(shop, 'three')
  tell(shop, 'four')
  const line = await records(live)
  assert.deepEqual(
    [line.records.map(({ id, body }) => [id, body]), line.skipped],
    [
      [
        [3, 'three'],
        [4, 'four'],
      ],
      0,
    ],
  )
  assert.deepEqual(await live.next(), [])
})

test('only what fits is told, and the newest of it', async () => {
  const { parts, tell } = open()
  for (let i = 0; i < 10; i++) tell(i % 2 ? shop : cron, `Cart ${i}`, i)
  const live = logs(parts, { ...all, service: 'shop', min_severity: 4, q: 'CART', limit: 2 })
  const past = await start(live)
  assert.deepEqual(
    past.records.map(({ body }) => body),
    ['Cart 7', 'Cart 9'],
  )
  assert.equal(
    past.histogram.levels.flatMap(({ counts }) => counts).reduce((a, b) => a + b),
    3,
  )
  tell(cron, 'cart of another', 20)
  assert.deepEqual(await live.next(), [])
  tell(shop, 'my cart', 20)
  assert.deepEqual(
    (await records(live)).records.map(({ body }) => body),
    ['my cart'],
  )
})

test('what comes too fast is counted, also what was overwritten before anybody looked', async () => {
  const { parts, tell } = open()
  const live = logs(parts, all)
  await start(live)
  for (let i = 1; i <= 1000; i++) tell(shop, `${i}`)
  const fast = await records(live)
  assert.deepEqual([fast.records.length, fast.skipped], [200, 800])
  assert.deepEqual([fast.records[0]?.body, fast.records.at(-1)?.body], ['801', '1000'])
  for (let i = 1; i <= 20_000; i++) tell(shop, `${i}`)
  const faster = await records(live)
  assert.deepEqual([faster.records.length, faster.skipped], [200, 19_800])
})

test('who sees nothing is told why, and what fixes it', async () => {
  const check = async (env: Record<string, string>, want: RegExp, files = 0) =>
    assert.match((await start(logs(open(env, files).parts, all))).no_data_reason, want)
  await check({ SVC_AGENT_LOGS_ENABLED: 'false' }, /set agent\.logs\.enabled: true/)
  await check({ SVC_MODE: 'collector' }, /set mode: agent/)
  await check({}, /No container on this host writes logs.*agent\.logs\.paths/)
  await check({}, /Following 2 files; nothing was written/, 2)
  await check({ SVC_AGENT_LOGS_CONTAINER_LOGS: 'false' }, /No log source is configured: set agent\.logs/)
  const { parts, tell } = open()
  tell(shop, 'a')
  assert.equal((await start(logs(parts, { ...all, q: 'no such text' }))).no_data_reason, '')
})
