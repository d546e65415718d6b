import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import test from 'node:test'
import {
  countersOf,
  installKey,
  recordWith,
  settingsOf,
  spanWith,
  stageOf,
} from '../../../../test/helpers/processor-stage.ts'
import type { AttributeValue } from '../../../foundation/model/attributes.ts'
import { resource } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import type { Stage } from '../processor.ts'
import { transform } from '../transform.ts'
import { transformation } from './settings.ts'

const shop = resource({ 'service.name': 'shop' })

/** A stage of one rule. Actions as `{type: X, X: {...}}`. */
function acting(actions: string, signal: Signal = 'traces'): Stage {
  const yaml = `transform: {enabled: true, rules: [{name: r, match: {signal_types: [${signal}]}, actions: [${actions}]}]}`
  return stageOf(transform, settingsOf('transform', transformation, yaml), signal)!
}

type Entries = Readonly<Record<string, AttributeValue>>

/** What an action makes of attributes, in their order, and how often it was skipped. */
function check(type: string, how: string, entries: Entries, want: Entries, skipped = 0): void {
  const stage = acting(`{type: ${type}, ${type}: ${how}}`)
  const span = spanWith(entries)
  assert.equal(stage.span!(span, shop), '')
  assert.deepEqual(Object.entries(span.attributes.toObject()), Object.entries(want), `${type} ${how}`)
  assert.equal(span.attributes.size, Object.keys(want).length)
  assert.deepEqual(countersOf(stage), { 'r matched': 1, 'r dropped': 0, 'r skipped': skipped })
}

test('set_attribute sets an attribute, in all three modes', () => {
  check('set_attribute', '{key: a, value: x}', {}, { a: 'x' })
  check('set_attribute', '{key: a, value: x}', { a: 'y', b: 1 }, { a: 'x', b: 1 })
  check('set_attribute', '{key: a, value: 5}', {}, { a: 5 })
  check('set_attribute', '{key: a, value: "5"}', {}, { a: '5' })
  check('set_attribute', '{key: a, value: 0.5}', {}, { a: 0.5 })
  check('set_attribute', '{key: a, value: false}', {}, { a: false })
  check('set_attribute', '{key: a, value: x, mode: insert}', {}, { a: 'x' })
  check('set_attribute', '{key: a, value: x, mode: insert}', { a: '' }, { a: '' })
  check('set_attribute', '{key: a, value: x, mode: update}', { a: 1 }, { a: 'x' })
  check('set_attribute', '{key: a, value: x, mode: update}', { b: 1 }, { b: 1 })
})

test('delete_attribute deletes one attribute, or all that a pattern finds', () => {
  check('delete_attribute', '{key: a}', { a: 1, b: 2 }, { b: 2 })
  check('delete_attribute', '{key: c}', { a: 1 }, { a: 1 })
  check('delete_attribute', '{key: /^a/}', { a: 1, b: 2, ab: 3, ba: 4 }, { b: 2, ba: 4 })
  check('delete_attribute', '{key: /./}', { a: 1, b: 2 }, {})
  check('delete_attribute', '{key: /x/}', { a: 1, b: 2 }, { a: 1, b: 2 })
})

test('rename_attribute keeps the place, and takes that of another one', () => {
  check('rename_attribute', '{from: a, to: b}', { a: 1, c: 2 }, { b: 1, c: 2 })
  check('rename_attribute', '{from: a, to: c}', { a: 1, b: 2, c: 3 }, { c: 1, b: 2 })
  check('rename_attribute', '{from: c, to: a}', { a: 1, b: 2, c: 3 }, { b: 2, a: 3 })
  check('rename_attribute', '{from: a, to: a}', { a: 1 }, { a: 1 })
  check('rename_attribute', '{from: x, to: a}', { a: 1 }, { a: 1 })
})

test('copy_attribute leaves the first one', () => {
  check('copy_attribute', '{from: a, to: b}', { a: 1 }, { a: 1, b: 1 })
  check('copy_attribute', '{from: a, to: b}', { b: 2, a: 1 }, { b: 1, a: 1 })
  check('copy_attribute', '{from: a, to: a}', { a: 1 }, { a: 1 })
  check('copy_attribute', '{from: x, to: b}', { a: 1 }, { a: 1 })
  check('copy_attribute', '{from: a, to: b}', { a: ['x'] }, { a: ['x'], b: ['x'] })
})

test('keep_attributes deletes all others', () => {
  check('keep_attributes', '{keys: [a]}', { a: 1, b: 2 }, { a: 1 })
  check('keep_attributes', '{keys: [b, a]}', { a: 1, b: 2, c: 3 }, { a: 1, b: 2 })
  check(
    'keep_attributes',
    '{keys: [/^http\\./, a]}',
    { 'http.x': 1, a: 2, 'a.http.': 3 },
    { 'http.x': 1, a: 2 },
  )
  check('keep_attributes', '{keys: []}', { a: 1 }, {})
  check('keep_attributes', '{keys: [a]}', {}, {})
})

test('hash_attribute puts a keyed hash in place of a value', () => {
  const hmac = (algorithm: string, key: string | Uint8Array, text: string) =>
    createHmac(algorithm, key).update(text).digest('hex')
  check('hash_attribute', '{key: a}', { a: 'x' }, { a: hmac('sha256', installKey, 'x') })
  check('hash_attribute', '{key: a, salt: s}', { a: 'x' }, { a: hmac('sha256', 's', 'x') })
  for (const algorithm of ['sha512', 'sha1', 'md5'])
    check(
      'hash_attribute',
      `{key: a, salt: s, algorithm: ${algorithm}}`,
      { a: 'ü' },
      { a: hmac(algorithm, 's', 'ü') },
    )
  check('hash_attribute', '{key: a, salt: s}', { a: 17 }, { a: hmac('sha256', 's', '17') })
  check('hash_attribute', '{key: a, salt: s}', { a: true }, { a: hmac('sha256', 's', 'true') })
  check(
    'hash_attribute',
    '{key: a, salt: s}',
    { a: ['x', ''] },
    { a: ['x', ''].map(text => hmac('sha256', 's', text)) },
  )
  check('hash_attribute', '{key: b, salt: s}', { a: 'x' }, { a: 'x' })
})

test('truncate_attribute cuts texts between two characters', () => {
  check('truncate_attribute', '{key: a, length: 3}', { a: 'abcd' }, { a: 'abc' })
  check('truncate_attribute', '{key: a, length: 4}', { a: 'abcd' }, { a: 'abcd' })
  check('truncate_attribute', '{key: a, length: 2}', { a: 'aü' }, { a: 'a' })
  check('truncate_attribute', '{key: a, length: 0}', { a: 'x' }, { a: '' })
  check('truncate_attribute', '{key: a, length: 1}', { a: ['xy', 'z'] }, { a: ['x', 'z'] })
  check('truncate_attribute', '{key: a, length: 1}', { a: 17 }, { a: 17 }, 1)
  check('truncate_attribute', '{key: b, length: 1}', { a: 'xy' }, { a: 'xy' })
})

test('replace changes texts by a pattern', () => {
  check('replace', '{key: a, pattern: "\\\\d+", replacement: N}', { a: '1 of 22' }, { a: 'N of N' })
  check('replace', '{key: a, pattern: "(\\\\w+)@(\\\\w+)", replacement: "$2 $1"}', { a: 'x@y' }, { a: 'y x' })
  check('replace', '{key: a, pattern: "(?P<k>\\\\w)=", replacement: "$<k>:"}', { a: 'k=v' }, { a: 'k:v' })
  check('replace', '{key: a, pattern: x}', { a: 'axb' }, { a: 'ab' })
  check('replace', '{key: a, pattern: x, replacement: y}', { a: ['x', 'z'] }, { a: ['y', 'z'] })
  check('replace', '{key: a, pattern: "1", replacement: y}', { a: 1 }, { a: 1 }, 1)
  check('replace', '{key: b, pattern: x}', { a: 'x' }, { a: 'x' })
  check(
    'replace',
    '{key: a, pattern: x, replacement: $0$0}',
    { a: 'x'.repeat(600_000) },
    { a: 'x'.repeat(600_000) },
    1,
  )
})

test('extract_attributes makes attributes of named groups', () => {
  const pattern = 'pattern: "(?P<user>\\\\w+)@(?P<host>[a-z.]+)"'
  check(
    'extract_attributes',
    `{key: a, ${pattern}}`,
    { a: 'x@b.org' },
    { a: 'x@b.org', user: 'x', host: 'b.org' },
  )
  check(
    'extract_attributes',
    `{key: a, ${pattern}, prefix: to.}`,
    { a: 'x@b' },
    { a: 'x@b', 'to.user': 'x', 'to.host': 'b' },
  )
  check(
    'extract_attributes',
    `{key: a, ${pattern}}`,
    { host: 'c', a: 'x@b' },
    { host: 'b', a: 'x@b', user: 'x' },
  )
  check('extract_attributes', `{key: a, ${pattern}}`, { a: 'nobody' }, { a: 'nobody' })
  check('extract_attributes', `{key: b, ${pattern}}`, { a: 'x@b' }, { a: 'x@b' })
  check('extract_attributes', `{key: a, ${pattern}}`, { a: 1 }, { a: 1 }, 1)
  check('extract_attributes', '{key: a, pattern: "(?P<n>x)|(?P<m>y)"}', { a: 'y' }, { a: 'y', m: 'y' })
  check('extract_attributes', '{key: a, pattern: "(?P<a>\\\\d+)"}', { a: 'no 17' }, { a: '17' })
})

test('log bodies are searched and changed', () => {
  const record = recordWith({}, { body: 'GET /users/17 took 12 ms' })
  const body = (actions: string) => {
    const stage = acting(actions, 'logs')
    assert.equal(stage.log!(record, shop), '')
    return countersOf(stage)['r skipped']
  }
  body('{type: extract_attributes, extract_attributes: {pattern: "took (?P<ms>\\\\d+) ms", prefix: took.}}')
  assert.deepEqual(record.attributes.toObject(), { 'took.ms': '12' })
  body('{type: replace_body, replace_body: {pattern: "/users/(\\\\d+)", replacement: "/users/*"}}')
  assert.equal(record.body, 'GET /users/* took 12 ms')
  body('{type: replace_body, replace_body: {pattern: "^(\\\\w+) ", replacement: "[$1] "}}')
  assert.equal(record.body, '[GET] /users/* took 12 ms')
  body('{type: replace_body, replace_body: {pattern: nowhere, replacement: x}}')
  assert.equal(record.body, '[GET] /users/* took 12 ms')
  record.body = 'x'.repeat(600_000)
  assert.equal(body('{type: replace_body, replace_body: {pattern: x, replacement: xx}}'), 1)
  assert.equal(record.body.length, 600_000)
})

test('set_severity sets number and text', () => {
  const check = (severity: string, number: number, text: string) => {
    const record = recordWith({}, { severity: 9, severityText: 'note' })
    acting(`{type: set_severity, set_severity: {severity: ${severity}}}`, 'logs').log!(record, shop)
    assert.deepEqual([record.severity, record.severityText], [number, text])
  }
  check('warn', 13, 'WARN')
  check('ERROR2', 18, 'ERROR2')
  check('trace', 1, 'TRACE')
  check('24', 24, 'FATAL4')
  check('12', 12, 'INFO4')
})

test('sample keeps whole traces: spans and their records fall alike', () => {
  const spans = acting('{type: sample, sample: {ratio: 0.25}}', 'traces')
  const records = acting('{type: sample, sample: {ratio: 0.25}}', 'logs')
  let kept = 0
  const rounds = 4000
  for (let i = 0; i < rounds; i++) {
    const traceId = createHmac('md5', 'k').update(String(i)).digest()
    const verdict = spans.span!(spanWith({}, { traceId }), shop)
    assert.equal(spans.span!(spanWith({}, { traceId }), shop), verdict)
    assert.equal(records.log!(recordWith({}, { traceId }), shop), verdict)
    if (verdict === '') kept++
    else assert.equal(verdict, 'sampled')
  }
  // Fixed ids: 1000 are expected, with a standard deviation of 27.
  assert.ok(Math.abs(kept - 1000) < 160, String(kept))
  assert.deepEqual(countersOf(records), { 'r matched': rounds, 'r dropped': rounds - kept, 'r skipped': 0 })
})

test('sample keeps all or nothing where it is told to, also of records without a trace', () => {
  const kept = (ratio: number, signal: Signal) => {
    const stage = acting(`{type: sample, sample: {ratio: ${ratio}}}`, signal)
    let count = 0
    for (let i = 0; i < 4000; i++) {
      const verdict =
        signal === 'logs'
          ? stage.log!(recordWith({}), shop)
          : stage.span!(spanWith({}, { traceId: new Uint8Array(16).fill(i) }), shop)
      if (verdict === '') count++
    }
    return count
  }
  assert.equal(kept(1, 'logs'), 4000)
  assert.equal(kept(0, 'logs'), 0)
  assert.equal(kept(1, 'traces'), 4000)
  assert.equal(kept(0, 'traces'), 0)
  // By chance: 2000 are expected, with a standard deviation of 32.
  assert.ok(Math.abs(kept(0.5, 'logs') - 2000) < 300)
})

test('drop ends the rules for the item', () => {
  const stage = acting('{type: drop}, {type: set_attribute, set_attribute: {key: a, value: x}}')
  const span = spanWith({})
  assert.equal(stage.span!(span, shop), 'transform')
  assert.equal(span.attributes.size, 0)
  assert.deepEqual(countersOf(stage), { 'r matched': 1, 'r dropped': 1, 'r skipped': 0 })
})

test('actions follow each other', () => {
  const stage = acting(
    [
      '{type: copy_attribute, copy_attribute: {from: url.full, to: user}}',
      '{type: replace, replace: {key: user, pattern: ".*user=(\\\\w+).*", replacement: $1}}',
      '{type: hash_attribute, hash_attribute: {key: user, salt: s}}',
      '{type: truncate_attribute, truncate_attribute: {key: user, length: 16}}',
      '{type: delete_attribute, delete_attribute: {key: url.full}}',
    ].join(', '),
  )
  const span = spanWith({ 'url.full': 'https://shop/?user=alice&x=1' })
  stage.span!(span, shop)
  const hash = createHmac('sha256', 's').update('alice').digest('hex').slice(0, 16)
  assert.deepEqual(span.attributes.toObject(), { user: hash })
})
