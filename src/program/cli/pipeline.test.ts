import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { decodeRequest } from '../../../test/helpers/otlp-proto.ts'
import { cleanEnvironment, svcProgram } from '../../../test/helpers/program-under-test.ts'
import { jsonToRequest } from '../../pipeline/exporters/otlp/from-json.ts'

const fixtures = join(import.meta.dirname, '../../../test/fixtures/otlp')
const traces = join(fixtures, 'traces.json')
const requests = join(fixtures, 'requests.json')
const directory = mkdtempSync(join(tmpdir(), 'svc-pipeline-'))
after(() => rmSync(directory, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

interface Result {
  readonly code: number | null
  readonly out: string
  readonly talk: string
}

function svc(args: readonly string[], input = ''): Promise<Result> {
  const child = spawn(process.execPath, [svcProgram, ...args], { cwd: directory, env: cleanEnvironment() })
  let out = ''
  let talk = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  child.stdin.on('error', () => {}) // it may end before it has read all
  child.stdin.end(input)
  return new Promise(resolve => child.on('close', code => resolve({ code, out, talk })))
}

const idle = file('idle.yaml', 'pipeline: {enabled: false}\n')
const busy = file(
  'busy.yaml',
  `pipeline:
  limits: {cardinality: {default_max_series: 1}}
  pii_redaction:
    enabled: true
    rules: [{name: email, type: email}, {name: card, type: credit_card}]
  transform:
    enabled: true
    rules:
      - {name: drop-health, match: {span_names: [GET /health]}, actions: [{type: drop}]}
      - name: region
        match: {signal_types: [traces]}
        actions: [{type: set_attribute, on: resource, set_attribute: {key: region, value: eu}}]
      - {name: idle, match: {span_names: [never]}, actions: [{type: drop}]}
`,
)

test('a pipeline that does nothing gives back what the model has of the input', async () => {
  const { code, out, talk } = await svc(['pipeline', 'test', '--config', idle, '--input', traces])
  assert.equal(code, 0)
  const spans = (json: string) => {
    const request = decodeRequest('traces', jsonToRequest('traces', JSON.parse(json))) as {
      resourceSpans: { resource: object; scopeSpans: { scope: object; spans: { events?: object }[] }[] }[]
    }
    return request.resourceSpans.map(({ resource, scopeSpans }) => ({
      resource,
      scopes: scopeSpans.map(({ scope, spans }) => ({
        scope,
        spans: spans.map(({ events, ...span }) => span),
      })),
    }))
  }
  assert.deepEqual(spans(out), spans(readFileSync(traces, 'utf8')))
  assert.equal(
    talk,
    'traces: 2 in, 2 out\ntraces: no processors are configured\ntraces: span events, lost: 1\n',
  )
})

test('the result is one request a line, without what was dropped', async () => {
  const { code, out } = await svc(
    ['pipeline', '--config', busy, '--input', '-'],
    readFileSync(requests, 'utf8'),
  )
  assert.equal(code, 0)
  const [logs, metrics, ...rest] = out.split('\n').filter(line => line !== '')
  assert.deepEqual(rest, [])
  assert.deepEqual(
    JSON.parse(logs!).resourceLogs[0].scopeLogs[0].logRecords.map((record: { body: object }) => record.body),
    [{ stringValue: 'order 7 of [REDACTED] paid' }, { stringValue: '{"cache":"miss"}' }],
  )
  const { dataPoints } = JSON.parse(metrics!).resourceMetrics[0].scopeMetrics[0].metrics[0].sum
  assert.deepEqual(
    dataPoints.map((point: Record<string, unknown>) => [point.asInt, point.startTimeUnixNano]),
    [
      ['5', '1760000000000000000'],
      ['18', '1760000000000000000'],
    ],
  )
})

test('--diff tells what changed in each item, who dropped which, and which rules never matched', async () => {
  const { code, out, talk } = await svc(['pipeline', 'test', '--config', busy, '--input', traces, '--diff'])
  assert.deepEqual([code, talk], [0, ''])
  assert.equal(
    out,
    `line 1, traces: resource "shop" changed
+ attributes.region: "eu"
line 1, traces: span "GET /users/{id}" changed
- attributes.user.email: "jane.doe@shop.example.com"
+ attributes.user.email: "[REDACTED]"
line 1, traces: span "GET /health" dropped: transform (transform "drop-health")
traces: 2 in, 1 out, 1 changed, 1 dropped by transform
traces: span events, lost: 1
transform "drop-health": matched 1, dropped 1, skipped 0
transform "region": matched 1, dropped 0, skipped 0
redact "email": redacted 1
transform, never matched: "idle"
redact, never matched: "card"
`,
  )
})

test('points are told one by one, and a series that was made of others is an added one', async () => {
  const args = ['pipeline', 'test', '--config', busy, '--input', requests, '--json']
  const lines = (await svc(args)).out.trimEnd().split('\n')
  const objects = lines.map(line => JSON.parse(line))
  const points = objects.filter(({ signal }) => signal === 'metrics')
  assert.deepEqual(
    points.map(({ item, outcome, reason, rules }) => [item, outcome, reason, rules]),
    [
      ['point http.requests{user="a"}', 'same', undefined, undefined],
      ['point http.requests{otel.metric.overflow=true}', 'added', undefined, undefined],
      ['point http.requests{user="b"}', 'dropped', 'cardinality', ['limit_series "http.requests"']],
      ['point http.requests{user="c"}', 'dropped', 'cardinality', ['limit_series "http.requests"']],
      ['point old.latency{}', 'same', undefined, undefined],
    ],
  )
  assert.deepEqual(objects.at(-1).summary.signals.metrics, {
    in: 4,
    out: 3,
    changed: 0,
    added: 1,
    dropped: { cardinality: 2 },
    omitted: {},
    lost: {},
  })
})

test('a byte order mark before the input changes nothing', async () => {
  const line = JSON.stringify(JSON.parse(readFileSync(traces, 'utf8')))
  const want = await svc(['pipeline', 'test', '--config', idle, '--input', '-'], line)
  for (const text of [line, JSON.stringify(JSON.parse(line), null, 2)])
    assert.deepEqual(await svc(['pipeline', 'test', '--config', idle, '--input', '-'], `\ufeff${text}`), want)
  assert.equal(want.code, 0)
})

test('--signal leaves the others out', async () => {
  const args = ['pipeline', 'test', '--config', idle, '--input', requests, '--signal']
  const { out } = await svc([...args, 'logs'])
  assert.deepEqual(Object.keys(JSON.parse(out)), ['resourceLogs'])
  const none = await svc([...args, 'traces'])
  assert.deepEqual([none.code, none.out, none.talk], [0, '', `${requests} has no traces\n`])
  const wrong = await svc([...args, 'trace'])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(wrong.talk, /unknown signal "trace"; did you mean traces\?/)
})

test('control characters of the input are shown by their code', async () => {
  const record = (body: string) =>
    JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: body } }] }] }] })
  const { out } = await svc(
    ['pipeline', 'test', '--config', busy, '--input', '-', '--diff'],
    record('\u001b[31m\u009b\u202ea@shop.example.com'),
  )
  assert.doesNotMatch(out, /[\u001b\u009b\u202e]/)
  assert.match(out, /\\u001b\[31m\\u\{9b\}\\u\{202e\}/)
})

test('bad input ends with exit code 2, its line, and what was expected', async () => {
  const check = async (input: string, want: RegExp) => {
    const { code, talk } = await svc(['pipeline', 'test', '--config', idle, '--input', '-'], input)
    assert.equal(code, 2)
    assert.match(talk, want)
  }
  const good = '{"resourceSpans":[]}\n'
  await check(
    `${good}\n{"resourceSpans":\n`,
    /standard input, line 3: expected OTLP JSON, found text that is not JSON/,
  )
  await check('{\n"resourceSpans": [\n{]}', /line 3: expected OTLP JSON/)
  await check('{\n"resourceSpans": [', /line 2: expected OTLP JSON/)
  await check(`${good}[]`, /line 2: expected an object with resourceSpans, .* or resourceProfiles/)
  await check(`${good}${good}{"resourceLogs":{}}`, /line 3: resourceLogs: expected an array/)
  const missing = await svc(['pipeline', 'test', '--config', idle, '--input', 'nowhere.json'])
  assert.equal(missing.code, 2)
  assert.match(missing.talk, /cannot read nowhere\.json: .*no such file/i)
  const none = await svc(['pipeline', 'test'])
  assert.equal(none.code, 2)
  assert.match(none.talk, /needs --input FILE/)
  const action = await svc(['pipeline', 'tst'])
  assert.equal(action.code, 2)
})

test('a line beyond 64 MiB is refused', async () => {
  const { code, talk } = await svc(
    ['pipeline', 'test', '--config', idle, '--input', '-'],
    `{"resourceSpans":[]}\n${' '.repeat(65 * 1024 * 1024)}`,
  )
  assert.equal(code, 2)
  assert.match(talk, /line 2: longer than 64 MiB/)
})
