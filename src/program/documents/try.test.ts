import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { defaults } from '../../config/index.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { resource } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { Span, SpanKind } from '../../foundation/model/span.ts'
import type { TryDocument } from '../../view/api/ui/documents.ts'
import type { TryQuery } from '../../view/api/ui/source.ts'
import { ExportPipelines } from '../agent/export-pipelines.ts'
import type { DocumentContext } from './document-context.ts'
import { shownText } from './shown-text.ts'
import { tryRules } from './try.ts'

const scope = { name: 'svc/network', version: '1' }
const cart = resource({ 'service.name': 'cart', 'deployment.environment.name': 'test' })

const open: { pipelines: ExportPipelines; timer: NodeJS.Timeout | undefined }[] = []
afterEach(async () => {
  for (const { pipelines, timer } of open.splice(0)) {
    clearInterval(timer)
    await pipelines.pipeline.close()
  }
})

/** A pipeline into which `add` puts items again and again, and which sends them nowhere. */
function flowing(add?: (pipelines: ExportPipelines) => void): DocumentContext {
  const pipelines = new ExportPipelines(defaults(), {
    log: silentLogger,
    observe: () => {},
    lock: () => true,
  })
  const timer = add && setInterval(() => add(pipelines), 20)
  open.push({ pipelines, timer })
  return { pipelines, shown: shownText(defaults()) } as Pick<
    DocumentContext,
    'pipelines' | 'shown'
  > as DocumentContext
}

function asked(rules: string, more: Partial<TryQuery> = {}): TryQuery {
  return { signal: 'traces', rules, items: 2, left: new AbortController().signal, ...more }
}

/** However slow the machine is. */
const tried = (parts: DocumentContext, query: TryQuery) => tryRules(parts, query, 60_000)

const span = new Span()
function addSpans({ pipeline }: ExportPipelines): void {
  for (const name of ['GET /health', 'GET /users']) {
    span.traceId.fill(1)
    span.spanId.fill(2)
    span.name = name
    span.kind = SpanKind.server
    span.startUs = 1_000_000
    span.endUs = 1_012_000
    span.attributes.clear()
    span.attributes.add('url.path', '/users/ann@example.com')
    span.attributes.add('http.response.status_code', 200)
    pipeline.intake('traces').add(cart, scope, span)
  }
}

const rule = (name: string, match: string, ...actions: string[]) =>
  `    - name: ${name}\n      match: ${match}\n      actions: [${actions.join(', ')}]\n`
const transform = (...rules: string[]) => `transform:\n  enabled: true\n  rules:\n${rules.join('')}`
const health = rule('health', '{span_names: [GET /health]}', '{type: drop}')

const changesOf = ({ items }: TryDocument) =>
  items.flatMap(({ changes }) =>
    changes.map(({ of, field, before, after }) => `${of} ${field}: ${before} -> ${after}`.trim()),
  )

test('items that come by are shown as the rules would leave them, and what runs stays as it is', async () => {
  const parts = flowing(addSpans)
  const { pipeline } = parts.pipelines
  const before = { ...pipeline.state('traces') }
  const rules = transform(
    health,
    rule(
      'own',
      '{attributes: {http.response.status_code: "200"}}',
      '{type: set_attribute, set_attribute: {key: region, value: eu}}',
      '{type: rename_attribute, rename_attribute: {from: url.path, to: path}}',
    ),
    rule('idle', '{span_names: [POST /never]}', '{type: drop}'),
  )
  const document = await tried(parts, asked(rules, { items: 4 }))!
  assert.deepEqual(document.problems, [])
  assert.equal(document.no_data_reason, '')
  const outcomes = document.items.map(({ title, outcome, reason }) => [title, outcome, reason])
  assert.equal(outcomes.length, 4)
  for (const told of [
    ['GET /health', 'dropped', 'transform "health"'],
    ['GET /users', 'changed', ''],
  ])
    assert.deepEqual(outcomes.filter(([title]) => title === told[0])[1], told)
  assert.deepEqual([...new Set(changesOf(document))].sort(), [
    'attributes.path: null -> "/users/[REDACTED]"',
    'attributes.region: null -> "eu"',
    'attributes.url.path: "/users/[REDACTED]" -> null',
  ])
  assert.ok(!JSON.stringify(document).includes('ann@'), 'personal data is not shown')
  const [dropped, changed] = ['dropped', 'changed'].map(
    outcome => document.items.find(each => each.outcome === outcome)!,
  )
  assert.equal(dropped!.after, null)
  assert.match(JSON.stringify(dropped!.before), /"GET \/health"/)
  assert.match(JSON.stringify(changed!.after), /"key":"region"/)
  assert.match(document.notes.join('\n'), /^traces: 4 in, 2 out, 2 changed, 2 dropped by transform$/m)
  assert.match(document.notes.join('\n'), /^transform, never matched: "idle"$/m)
  // Spans went on all the time, past the processors that run, and all of them.
  const { collected, dropped: lost, droppedTotal } = pipeline.state('traces')
  assert.ok(collected > before.collected)
  assert.deepEqual([...lost.keys()], ['no_endpoint'])
  assert.equal(droppedTotal, collected)
})

test('what is wrong with rules is told with its place, and no item is waited for', async () => {
  const check = async (rules: string, want: object) => {
    const document = await tried(flowing(), asked(rules))!
    const [{ line, column, key, message } = {} as TryDocument['problems'][number]] = document.problems
    assert.deepEqual({ line, column, key }, want)
    assert.ok(message!.length > 10)
    assert.deepEqual(document.items, [])
    assert.match(document.no_data_reason, /rules have errors/)
    assert.ok(document.waited_ms === 0)
  }
  await check('transfrom: {}\n', { line: 1, column: 1, key: 'transfrom' })
  await check('transform:\n  enabled: [\n', { line: 2, column: 12, key: '' })
  const pattern = transform(rule('a', '{span_names: ["/(/"]}', '{type: drop}'))
  await check(pattern, { line: 5, column: 28, key: 'transform.rules[0].match.span_names[0]' })
  await check('limits: {cardinality: {default_max_series: 9, global_max_series: 8}}', {
    line: 1,
    column: 44,
    key: 'limits.cardinality.default_max_series',
  })
  await check('export: {otlp: {endpoint: "x:1"}}', { line: 1, column: 1, key: 'export' })
})

test('rules may stand below pipeline, and rules that are off are told of', async () => {
  const rules = `pipeline:\n${transform(health).replace('true', 'false').replaceAll(/^/gm, '  ')}`
  const { problems, items, notes } = await tried(flowing(addSpans), asked(rules))!
  assert.deepEqual(problems, [])
  assert.ok(items.every(({ outcome }) => outcome === 'same'))
  assert.match(notes[0]!, /set transform\.enabled: true/)
})

test('neither files nor variables of the agent can be read by rules', async () => {
  const actions = [`\${file:/proc/self/environ}`, `\${PATH}`].map(
    (value, i) => `{type: set_attribute, set_attribute: {key: k${i}, value: "${value}"}}`,
  )
  const document = await tried(
    flowing(addSpans),
    asked(transform(rule('a', '{}', ...actions)), { items: 1 }),
  )!
  assert.deepEqual(changesOf(document), [
    `attributes.k0: null -> "\${file:/proc/self/environ}"`,
    `attributes.k1: null -> "\${PATH}"`,
  ])
})

test('logs, metrics and profiles are tried, each by its parts', async () => {
  const check = async (
    signal: Signal,
    rules: string,
    add: (pipelines: ExportPipelines) => void,
    want: unknown,
  ) => {
    const document = await tried(flowing(add), asked(rules, { signal, items: 1 }))!
    assert.deepEqual(document.problems, [])
    const [item] = document.items
    assert.deepEqual([item!.title, item!.outcome, changesOf(document)], want, JSON.stringify(document))
  }
  const record = new LogRecord()
  await check(
    'logs',
    transform(
      rule(
        'a',
        '{signal_types: [logs]}',
        '{type: replace_body, replace_body: {pattern: "item (\\\\d+)", replacement: "item N"}}',
      ),
    ),
    pipelines => {
      record.body = 'took item 17'
      record.observedUs = 2_000_000
      pipelines.pipeline.intake('logs').add(cart, scope, record)
    },
    ['took item 17', 'changed', ['body: "took item 17" -> "took item N"']],
  )
  const core = (cpu: string) => ({
    attributes: resource({ cpu }).attributes,
    startUs: 0,
    timeUs: 3_000_000,
    value: 7,
  })
  await check(
    'metrics',
    transform(
      rule('a', '{attributes: {cpu: "0"}}', '{type: drop}'),
      rule(
        'b',
        '{signal_types: [metrics]}',
        '{type: rename_attribute, rename_attribute: {from: cpu, to: core}}',
      ),
    ),
    pipelines =>
      pipelines.pipeline.intake('metrics').add(cart, scope, {
        kind: 'gauge',
        name: 'cpu.load',
        description: '',
        unit: '1',
        points: [core('0'), core('1')],
      }),
    [
      'cpu.load',
      'changed',
      [
        'point cpu.load{cpu="1"} attributes.cpu: "1" -> null',
        'point cpu.load{cpu="1"} attributes.core: null -> "1"',
        'point cpu.load{cpu="0"} : transform "a" -> null',
      ],
    ],
  )
  await check(
    'profiles',
    transform(rule('a', '{resource_attributes: {service.name: cart}}', '{type: drop}')),
    pipelines =>
      pipelines.pipeline.intake('profiles').add(cart, scope, {
        kind: 'cpu',
        unit: 'nanoseconds',
        startUs: 1_000_000,
        durationUs: 5_000_000,
        samples: [
          { frames: [{ name: 'main', file: '', line: 0 }], value: 40, attributes: resource({}).attributes },
        ],
      }),
    ['cpu', 'dropped', []],
  )
})

test('where nothing comes by it says so, and one at a time is tried', async () => {
  const parts = flowing()
  const first = tried(parts, asked('', { signal: 'metrics' }))!
  assert.equal(tried(parts, asked('')), undefined)
  const { items, no_data_reason: off, waited_ms } = await first
  assert.deepEqual(items, [])
  assert.match(off, /^no metrics arrived within 3 s: .*svc doctor host/)
  assert.ok(waited_ms >= 2990)
  const left = new AbortController()
  const second = tried(parts, asked('', { left: left.signal }))!
  left.abort()
  assert.deepEqual((await second).items, [])
})

test('items that are too large are counted, and as many as are tried are bounded in bytes', async () => {
  const record = new LogRecord()
  const sizes = [70_000, 60_000]
  const parts = flowing(({ pipeline }) => {
    for (const size of sizes) {
      record.body = 'x '.repeat(size / 2)
      pipeline.intake('logs').add(cart, scope, record)
    }
  })
  const { items, skipped } = await tried(parts, asked('', { signal: 'logs', items: 50 }))!
  assert.ok(items.length >= 4 && items.length <= 6, `${items.length}`)
  assert.ok(skipped >= 4)
})

test('rules that take all the time there is hold up nobody, and are given up', async () => {
  const parts = flowing(addSpans)
  const check = async (rules: string) => {
    let ticks = 0
    const ticking = setInterval(() => ticks++, 5)
    const document = await tryRules(parts, asked(rules))!
    clearInterval(ticking)
    assert.ok(document.no_data_reason !== '', JSON.stringify(document).slice(0, 500))
    // The thread alone takes longer to begin.
    assert.ok(ticks > 10, `the agent stood still: ${ticks}`)
    return document
  }
  await check('['.repeat(60_000))
  const anchors = 'bcdefghij'
  const bomb = [...anchors].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghij'[i]}`)}]`)
  await check(['a: &a [x,x,x,x,x,x,x,x,x]', ...bomb].join('\n'))
  const monstrous = `          - &r "${'(a|b)*'.repeat(2000)}"\n${'          - *r\n'.repeat(3000)}`
  await check(
    `transform:\n  enabled: true\n  rules:\n    - name: a\n      match:\n        log_bodies:\n${monstrous}      actions: []\n`,
  )
  // Others are tried as before.
  assert.equal((await tried(parts, asked(transform(health)))!).items.length, 2)
})
