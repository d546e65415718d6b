// owns: process
// Logs, from the file of a program to the receiver, by the whole agent.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { type Receiver, startReceiver } from '../helpers/otlp-receiver.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

interface Place {
  readonly directory: string
  readonly log: string
  readonly receiver: Receiver
  start(logs?: Tree, more?: Tree): Promise<AgentProcess>
  bodies(): string[]
}

async function place(t: TestContext): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-logs-'))
  const receiver = await startReceiver({ keep: true })
  const agents: AgentProcess[] = []
  t.after(async () => {
    for (const agent of agents) await agent.kill()
    await receiver.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const log = join(directory, 'app.log')
  return {
    directory,
    log,
    receiver,
    bodies: () => receiver.lines.filter(({ signal }) => signal === 'logs').map(({ body }) => String(body)),
    start: async (logs = {}, more = {}) => {
      const agent = await AgentProcess.start({
        endpoint: receiver.endpoint,
        config: {
          ...more,
          agent: {
            ebpf: { enabled: false },
            logs: {
              enabled: true,
              container_logs: false,
              paths: [join(directory, '*.log')],
              start_at: 'beginning',
              position_file: join(directory, 'positions'),
              ...logs,
            },
          },
          pipeline: {
            export: {
              batch: { timeout: '100ms' },
              queue: { enabled: true, directory: join(directory, 'queue'), fsync: '20ms' },
            },
            ...(more.pipeline as Tree | undefined),
          },
        },
      })
      agents.push(agent)
      return agent
    },
  }
}

test('lines of a file arrive as records with severity, trace and fields, and are shown', async t => {
  const { log, start, receiver, directory } = await place(t)
  const line = { level: 'error', msg: 'card refused', trace_id: traceId, span_id: spanId, order: { id: 7 } }
  writeFileSync(log, `2026-01-02 10:00:00 WARN disk is nearly full\n${JSON.stringify(line)}\n`)
  writeFileSync(join(directory, 'app.log.1.gz'), 'left alone')
  const agent = await start()
  await until('both records', 20_000, async () => receiver.counts.logs === 2)
  const [text, json] = receiver.lines.filter(({ signal }) => signal === 'logs')
  assert.equal(text!.body, '2026-01-02 10:00:00 WARN disk is nearly full')
  assert.deepEqual([text!.severity, json!.severity], [13, 17])
  assert.equal(json!.body, 'card refused')
  assert.deepEqual([json!.traceId, json!.spanId], [traceId, spanId])
  const { attributes, resource } = json as unknown as Record<string, Record<string, unknown>>
  assert.equal(attributes!['order.id'], 7)
  assert.equal(attributes!['log.file.path'], log)
  assert.equal(resource!['host.name'], hostname())
  const { records } = await agent.document<{ records: Record<string, unknown>[] }>(
    `/logs?trace_id=${traceId}`,
  )
  assert.deepEqual(
    records.map(({ body }) => body),
    ['card refused'],
  )
  const status = await agent.document<Record<string, unknown>>('/status/logs')
  assert.deepEqual([status.enabled, status.records, status.files], [true, { files: 2 }, 1])
  const metrics = await agent.metrics()
  assert.equal(metrics.sum('svc_log_records_total', 'source="files"'), 2)
  assert.equal(metrics.sum('svc_logs_collected_total', 'signal_type="files"'), 2)
  assert.equal(metrics.sum('svc_logs_exported_total'), 2)
  assert.deepEqual([status.omitted_files, status.omitted_directories, status.evicted_logs], [0, 0, 0])
  const { text: page } = await agent.get('/metrics')
  assert.match(page, /^svc_share_losses_total\{table="logs",reason="refused"\} 0$/m)
  assert.match(page, /^svc_memory_table_bytes\{table="positions of logs"\} [1-9]/m)
  assert.match(page, /^svc_memory_table_bytes\{table="unfinished log texts"\} 0$/m)
  const counted = (name: string) => async () => (await agent.metrics()).sum(name) > 0
  writeFileSync(log, 'begun anew\n')
  await until('the cut is counted', 20_000, counted('svc_log_truncations_total'))
})

test('what redaction takes out is nowhere, not even in what is shown of late', async t => {
  const { log, start, receiver } = await place(t)
  const agent = await start({}, {
    pipeline: { pii_redaction: { enabled: true, rules: [{ name: 'mail', type: 'email' }] } },
  } as unknown as Tree)
  writeFileSync(log, 'mail to jane@example.com bounced\n')
  await until('the record', 20_000, async () => receiver.counts.logs === 1)
  const { text } = await agent.get('/logs')
  assert.ok(text.includes('mail to '), text)
  assert.ok(!text.includes('jane@'), text)
  assert.ok(!JSON.stringify(receiver.lines).includes('jane@'))
})

test('what several lines say is one record, where a pattern tells them', async t => {
  const { log, start, bodies } = await place(t)
  await start({ multiline: { enabled: true, pattern: '^\\s', match: 'after', timeout: '300ms' } })
  writeFileSync(log, 'Error: no\n  at a.js:1\n  at b.js:2\nnext\n')
  await until('both records', 20_000, async () => bodies().length === 2)
  assert.deepEqual(bodies(), ['Error: no\n  at a.js:1\n  at b.js:2', 'next'])
})

test('a reload goes on where reading was, and neither it nor the end waits for a batch to become full', async t => {
  const { directory, log, start, bodies } = await place(t)
  const patient = {
    pipeline: { export: { batch: { timeout: '1h' }, queue: { enabled: false } } },
  } as unknown as Tree
  const agent = await start({}, patient)
  appendFileSync(log, 'one\ntwo\n')
  const records = async () =>
    (await agent.document<{ records: { files?: number } }>('/status/logs')).records.files
  await until('both lines are read', 20_000, async () => (await records()) === 2)
  agent.configure({ agent: { logs: { parse: { json: false } } } })
  process.kill(agent.pid, 'SIGHUP')
  await until('both lines', 20_000, async () => bodies().length === 2)
  appendFileSync(log, 'three\n')
  await until('the third line is read', 20_000, async () => (await records()) === 3)
  await agent.stop()
  assert.deepEqual(bodies(), ['one', 'two', 'three'])
  assert.match(readFileSync(join(directory, 'positions'), 'utf8'), /"offset":14,/)
})

test('an agent that is killed again and again while a log is written and rotated loses no line of it', {
  timeout: 300_000,
}, async t => {
  const { log, start, bodies } = await place(t)
  const kills = soak ? 10 : 2
  let written = 0
  let rotations = 0
  const write = () => {
    let text = ''
    for (let i = 0; i < 200; i++) text += `line ${++written} of many that are written and rotated away\n`
    appendFileSync(log, text)
    if (written % 3_000 === 0) renameSync(log, `${log}.${++rotations}`)
  }
  // Files that were rotated away before anybody looked are none of the log.
  write()
  let agent = await start()
  await until('the first lines', 20_000, async () => bodies().length > 0)
  const timer = setInterval(write, 20)
  t.after(() => clearInterval(timer))
  for (let kill = 0; kill < kills; kill++) {
    const before = written
    await until('more lines', 30_000, async () => written > before + 4_000)
    await agent.kill()
    agent = await start()
  }
  clearInterval(timer)
  await until(
    () => `every line of ${written}; missing: ${missing(bodies(), written)}\n${agent.logText()}`,
    60_000,
    async () => new Set(bodies()).size === written,
  )
  const first = [...new Set(bodies())].map(body => Number(/^line (\d+) /.exec(body)![1]))
  assert.deepEqual(
    first.filter((number, at) => number !== at + 1).slice(0, 5),
    [],
    'lines arrive in their order',
  )
  assert.match(readFileSync(log.replace('app.log', 'positions'), 'utf8'), /"offset"/)
})

/** The numbers of lines that did not come, in ranges. */
function missing(bodies: readonly string[], written: number): string {
  const come = new Set(bodies.map(body => Number(/^line (\d+) /.exec(body)?.[1])))
  const ranges: string[] = []
  for (let from = 1; from <= written; from++) {
    if (come.has(from)) continue
    let to = from
    while (to < written && !come.has(to + 1)) to++
    ranges.push(`${from}-${to}`)
    from = to
  }
  return ranges.join(' ')
}
