import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import { resource } from '../../foundation/model/resource.ts'
import { Span } from '../../foundation/model/span.ts'
import { build } from '../../foundation/schema/tree.ts'
import type { Stage } from './processor.ts'
import type { Mode } from './redact/redactor.ts'
import { type RedactionConfig, type RuleType, redaction } from './redact/settings.ts'
import { redact } from './redact.ts'

interface MadeRule {
  readonly name?: string
  readonly type: RuleType
  readonly pattern?: string
  readonly enabled?: boolean
  readonly mode?: Mode
  readonly replacement?: string
}

type Given = Partial<Omit<RedactionConfig, 'rules'>> & { readonly rules?: readonly MadeRule[] }

const env = {
  signal: 'logs',
  log: undefined as never,
  installKey: () => new Uint8Array(32).fill(7),
  nowMs: () => performance.now(),
} as const

function compile({ rules = [], ...given }: Given = {}, before?: Stage): Stage | undefined {
  const own = rules.map(rule => ({
    name: rule.type,
    pattern: '',
    enabled: true,
    mode: '' as const,
    replacement: '',
    ...rule,
  }))
  const config = { ...build(redaction, new Map()), enabled: true, ...given, rules: own }
  return redact.compile({ pii_redaction: config }, env, before)
}

const stageOf = (given?: Given): Stage => compile(given)!
const shop = resource({ 'service.name': 'shop' })

function countsOf(stage: Stage): Record<string, number> {
  const counts: Record<string, number> = {}
  stage.counters((rule, outcome, total) => {
    if (total > 0) counts[`${rule} ${outcome}`] = total
  })
  return counts
}

/** Attributes after a span with them has passed. */
function through(stage: Stage, attributes: Record<string, AttributeValue>): Record<string, AttributeValue> {
  const span = new Span()
  for (const [key, value] of Object.entries(attributes)) span.attributes.set(key, value)
  assert.equal(stage.span!(span, shop), '')
  return span.attributes.toObject()
}

function body(stage: Stage, text: string): string {
  const record = new LogRecord()
  record.body = text
  assert.equal(stage.log!(record, shop), '')
  return record.body
}

test('without being enabled, or with no rule left, there is no stage', () => {
  assert.equal(compile({ enabled: false }), undefined)
  assert.equal(compile({ rules: [{ type: 'email', enabled: false }] }), undefined)
})

test('only the rules that are given apply, and without any all types but addresses of hosts', () => {
  const text = 'bob@example.com 4242424242424242 192.0.2.1'
  assert.equal(body(stageOf({ rules: [{ type: 'email' }] }), text), '[REDACTED] 4242424242424242 192.0.2.1')
  assert.equal(body(stageOf(), text), '[REDACTED] [REDACTED] 192.0.2.1')
  assert.equal(
    body(stageOf({ rules: [{ type: 'ipv4' }] }), text),
    'bob@example.com 4242424242424242 [REDACTED]',
  )
})

const modes: readonly (readonly [Mode, string | undefined, string])[] = [
  ['replace', 'to [REDACTED]', 'to [REDACTED]'],
  ['hash', 'to [HASH:', 'to [HASH:'],
  ['drop', undefined, '[REDACTED]'],
  ['count', 'to bob@example.com', 'to bob@example.com'],
]
for (const [mode, attribute, name] of modes) {
  test(`mode ${mode} acts on attributes, bodies and names of every signal`, () => {
    const stage = stageOf({ mode, scan_span_names: true })
    const text = 'to bob@example.com'
    const begins = (value: unknown, want: string | undefined) =>
      want === undefined
        ? assert.equal(value, undefined)
        : assert.ok(String(value).startsWith(want), String(value))

    const span = new Span()
    span.name = text
    span.statusMessage = text
    span.attributes.set('a', text)
    span.attributes.set('n', 1)
    assert.equal(stage.span!(span, shop), '')
    begins(span.name, name)
    begins(span.statusMessage, name)
    begins(span.attributes.get('a'), attribute)
    assert.equal(span.attributes.get('n'), 1)

    const record = new LogRecord()
    record.body = text
    record.eventName = text
    record.attributes.set('a', text)
    assert.equal(stage.log!(record, shop), '')
    begins(record.body, name)
    begins(record.eventName, name)
    begins(record.attributes.get('a'), attribute)

    const scope = stage.scope!({ name: text, version: text, attributes: Attributes.of({ a: text }) })
    begins(scope.name, name)
    begins(scope.version, name)
    begins(scope.attributes!.get('a'), attribute)
    const clean = { name: 'svc', version: '1', attributes: Attributes.of({ a: 'b' }) }
    assert.equal(stage.scope!(clean), clean)

    const series = Attributes.of({ a: text })
    assert.equal(stage.series!(series, {} as Metric, shop), '')
    begins(series.get('a'), attribute)

    const profile = {
      samples: [{ frames: [], value: 1, attributes: Attributes.of({ a: text }) }],
    } as unknown as Profile
    assert.equal(stage.profile!(profile, shop), '')
    begins(profile.samples[0]!.attributes.get('a'), attribute)

    const made = resource({ 'service.name': 'shop', a: text })
    const redacted = stage.resource!(made)!
    begins(redacted.attributes.get('a'), attribute)
    assert.equal(made.attributes.get('a'), text)
    assert.equal(redacted === made, mode === 'count')

    assert.deepEqual(countsOf(stage), { [`email ${mode === 'count' ? 'found' : 'redacted'}`]: 12 })
  })
}

test('span names and log bodies are left alone where the settings say so', () => {
  const span = new Span()
  span.name = 'GET /bob@example.com'
  stageOf().span!(span, shop)
  assert.equal(span.name, 'GET /bob@example.com')
  assert.equal(body(stageOf({ scan_log_bodies: false }), 'bob@example.com'), 'bob@example.com')
})

test('names of severities are looked into, and a trace state with something in it goes as a whole', () => {
  const stage = stageOf()
  const record = new LogRecord()
  for (const [text, want] of [
    ['INFO', 'INFO'],
    ['856-45-6789', '[REDACTED]'],
    ['INFO', 'INFO'],
  ] as const) {
    record.severityText = text
    stage.log!(record, shop)
    assert.equal(record.severityText, want)
  }
  const span = new Span()
  for (const [text, want] of [
    ['rojo=00f067aa0ba902b7', 'rojo=00f067aa0ba902b7'],
    ['rojo=1,user=bob@example.com', ''],
  ] as const) {
    span.traceState = text
    stage.span!(span, shop)
    assert.equal(span.traceState, want)
  }
})

test('a resource in which nothing is found stays the same object', () => {
  const made = resource({
    'service.name': 'shop',
    'process.pid': 4,
    'host.id': '4bf92f3577b34da6a3ce929d0e0e4736',
  })
  assert.equal(stageOf().resource!(made), made)
})

test('attributes whose key names a secret are redacted whatever is in them', () => {
  const stage = stageOf({ replacement: '-' })
  const secret = {
    'db.password': 'x',
    'app.api_key': 'x',
    clientSecret: 'x',
    'http.request.header.authorization': 'x',
  }
  const others = {
    'http.request.header.x-api-key': ['a', 'b'],
    'http.response.header.set-cookie': ['x=y'],
    PIN_TOKEN: 12,
  }
  const more = {
    cookie: 'a',
    'proxy-authorization': 'x',
    'aws.access_key_id': 'x',
    'rpc.grpc.request.metadata.x-auth': 'x',
  }
  const all: Record<string, AttributeValue> = { ...secret, ...others, ...more }
  for (const [key, value] of Object.entries(through(stage, all)))
    assert.deepEqual(value, Array.isArray(all[key]) ? all[key].map(() => '-') : '-', key)
  const plain = {
    'gen_ai.usage.input_tokens': 12,
    'k8s.secret.name': 'db',
    'password.enabled': true,
    'auth.token': false,
    compass: 'north',
    'http.request.header.accept': ['x'],
    'db.password.age': 'ten days',
    token: '',
  }
  assert.deepEqual(through(stage, plain), plain)
})

test('keys and values of the same thing are counted under the type of the key', () => {
  const stage = stageOf()
  through(stage, { password: 'bob@example.com', 'http.request.header.cookie': ['a=b'], token: 'x' })
  assert.deepEqual(countsOf(stage), {
    'password redacted': 1,
    'auth_header redacted': 1,
    'api_key redacted': 1,
  })
})

test('lists are looked into, and the value behind a flag goes', () => {
  const stage = stageOf()
  const args = [
    'mysql',
    '--password',
    'hunter2',
    '-h',
    'db',
    '--token=4bf92f3577b34da6a3ce929d0e0e4736',
    'bob@example.com',
  ]
  const redacted = through(stage, { 'process.command_args': args, clean: ['a', 'b'] })
  assert.deepEqual(redacted['process.command_args'], [
    'mysql',
    '--password',
    '[REDACTED]',
    '-h',
    'db',
    '--token=[REDACTED]',
    '[REDACTED]',
  ])
  assert.equal(args[2], 'hunter2')
  assert.deepEqual(through(stageOf({ mode: 'drop' }), { a: ['x', 'bob@example.com'], b: 1 }), { b: 1 })
})

test('of very many attributes those that are dropped go in one pass, and of two with one key the right one', () => {
  const stage = stageOf({ mode: 'drop' })
  const span = new Span()
  for (let i = 0; i < 100_000; i++) span.attributes.add(`key${i}`, 'bob@example.com')
  span.attributes.add('a', 'kept')
  span.attributes.add('a', 'eve@example.com')
  const start = performance.now()
  stage.span!(span, shop)
  // It took 20 s when each of them moved all that follow.
  assert.ok(performance.now() - start < 12_000)
  assert.deepEqual([span.attributes.size, span.attributes.values[0]], [1, 'kept'])
})

test('numbers are looked into where they are long enough', () => {
  const stage = stageOf({ rules: [{ type: 'credit_card' }, { type: 'ssn' }, { type: 'phone' }] })
  const card = 4242424242424242
  assert.deepEqual(through(stage, { card, n: [`${card}`] }), { card: '[REDACTED]', n: ['[REDACTED]'] })
  assert.deepEqual(through(stage, { ssn: 856456789, 'user.phone': 2125550100 }), {
    ssn: '[REDACTED]',
    'user.phone': '[REDACTED]',
  })
  const plain = {
    time: 1_700_000_000_000,
    ns: 1.7e18,
    id: 856456789,
    size: 4242424242424241,
    f: 4242424242.5,
    x: NaN,
    y: -1e300,
  }
  assert.deepEqual(through(stage, plain), plain)
  const own = stageOf({ rules: [{ type: 'regex', pattern: '^\\d{11}$' }] })
  assert.deepEqual(through(own, { id: 44051401359, n: 440514 }), { id: '[REDACTED]', n: 440514 })
})

test('the key of an attribute tells what a bare number is', () => {
  const stage = stageOf()
  assert.equal(through(stage, { 'customer.phone': '5550100' })['customer.phone'], '[REDACTED]')
  assert.equal(through(stage, { 'customer.id': '5550100' })['customer.id'], '5550100')
})

test('allowed attributes are not looked into', () => {
  const rules = [{ type: 'ipv4' }, { type: 'password' }] as const
  const stage = stageOf({ allowed_attributes: ['client.address', 'password'], rules })
  const given = { 'client.address': '192.0.2.1', password: 'x', 'server.address': '192.0.2.1' }
  assert.deepEqual(through(stage, given), { ...given, 'server.address': '[REDACTED]' })
})

test('a rule may have a mode and a replacement of its own', () => {
  const stage = stageOf({
    rules: [
      { type: 'email', mode: 'hash' },
      { type: 'ipv4', mode: 'count' },
      { type: 'ssn', mode: 'drop' },
      { type: 'regex', name: 'employee', pattern: 'EMP-\\d+', replacement: '<employee>' },
      { type: 'phone', replacement: '<phone>' },
    ],
    hash_key: 'sixteen letters!',
  })
  const given = { a: 'bob@example.com 192.0.2.1 EMP-12 +12125550100', b: '856-45-6789' }
  const { a, b } = through(stage, given)
  assert.match(String(a), /^\[HASH:[0-9a-f]{16}\] 192\.0\.2\.1 <employee> <phone>$/)
  assert.equal(b, undefined)
  assert.deepEqual(countsOf(stage), {
    'email redacted': 1,
    'ipv4 found': 1,
    'ssn redacted': 1,
    'employee redacted': 1,
    'phone redacted': 1,
  })
})

test('hashes depend on hash_key, or on the key of this installation', () => {
  const hash = (given: Given) => body(stageOf({ mode: 'hash', ...given }), 'bob@example.com')
  assert.equal(hash({ hash_key: 'sixteen letters!' }), hash({ hash_key: 'sixteen letters!' }))
  assert.notEqual(hash({ hash_key: 'sixteen letters!' }), hash({}))
  assert.equal(hash({}), hash({}))
})

test('a dry run changes nothing, long values included, and counts each time', () => {
  const stage = stageOf({ mode: 'count', max_scan_bytes: 1024 })
  const long = `${'x '.repeat(1000)}bob@example.com`
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(through(stage, { a: 'bob@example.com', password: 'x' }), {
      a: 'bob@example.com',
      password: 'x',
    })
    assert.equal(body(stage, long), long)
  }
  assert.deepEqual(countsOf(stage), { 'email found': 3, 'password found': 3, 'max_scan_bytes unscanned': 3 })
})

test('the same value again is not looked into again, and another one is', () => {
  const stage = stageOf()
  for (const a of ['GET', 'GET', 'POST', 'GET', 'bob@example.com', 'GET', 'bob@example.com'])
    assert.equal(through(stage, { a }).a, a.includes('@') ? '[REDACTED]' : a)
  assert.deepEqual(countsOf(stage), { 'email redacted': 2 })
})

test('counts go on after a reload, by the name of the rule', () => {
  const first = compile({ rules: [{ type: 'email' }, { type: 'ssn' }] })!
  body(first, 'bob@example.com 856-45-6789')
  const second = compile({ rules: [{ type: 'email', mode: 'count' }] }, first)!
  body(second, 'bob@example.com')
  assert.deepEqual(countsOf(second), { 'email redacted': 1, 'email found': 1 })
})

test('rules that contradict each other are refused in words', () => {
  const check = (rules: readonly MadeRule[], fault: RegExp) => assert.throws(() => compile({ rules }), fault)
  check(
    [{ type: 'email' }, { name: 'again', type: 'email' }],
    /rule "again": rule "email" is of type "email" too/,
  )
  check([{ name: 'all', type: 'regex', pattern: '.*' }], /pattern of rule "all": it matches empty text/)
})
