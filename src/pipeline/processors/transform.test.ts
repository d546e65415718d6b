import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import {
  countersOf,
  gaugeWith,
  profileWith,
  read,
  recordWith,
  settingsOf,
  spanWith,
  stageOf,
} from '../../../test/helpers/processor-stage.ts'
import { resource } from '../../foundation/model/resource.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { SpanKind } from '../../foundation/model/span.ts'
import { branch } from '../../foundation/schema/tree.ts'
import type { Stage } from './processor.ts'
import { transformation } from './transform/settings.ts'
import { transform } from './transform.ts'

function compile(rules: string, signal: Signal, before?: Stage): Stage | undefined {
  const settings = settingsOf('transform', transformation, `transform: {enabled: true, rules: [${rules}]}`)
  return stageOf(transform, settings, signal, before)
}

const set = (key: string, value: string) =>
  `{type: set_attribute, set_attribute: {key: ${key}, value: ${value}}}`
const shop = resource({ 'service.name': 'shop', 'host.name': 'h1' })

test('where there is nothing to do there is no stage', () => {
  for (const signal of signals) {
    const settings = settingsOf(
      'transform',
      transformation,
      'transform: {rules: [{name: r, actions: [{type: drop}]}]}',
    )
    assert.equal(stageOf(transform, settings, signal), undefined)
    assert.equal(compile('', signal), undefined)
    assert.equal(compile('{name: r, enabled: false, actions: [{type: drop}]}', signal), undefined)
  }
  assert.equal(
    compile('{name: r, match: {signal_types: [logs]}, actions: [{type: drop}]}', 'traces'),
    undefined,
  )
})

test('rules act in their order, each on what those before left', () => {
  const stage = compile(
    [
      `{name: one, match: {attributes: {a: x}}, actions: [${set('b', 'y')}]}`,
      '{name: two, match: {attributes: {b: y}}, actions: [{type: rename_attribute, rename_attribute: {from: b, to: c}}]}',
      `{name: three, match: {attributes: {b: "*"}}, actions: [${set('never', '1')}]}`,
      '{name: four, match: {attributes: {a: gone}}, actions: [{type: drop}]}',
      `{name: five, actions: [${set('last', 'true')}]}`,
    ].join(', '),
    'traces',
  )!
  const span = spanWith({ a: 'x' })
  assert.equal(stage.span!(span, shop), '')
  assert.deepEqual(span.attributes.toObject(), { a: 'x', c: 'y', last: true })
  assert.equal(stage.span!(spanWith({ a: 'gone' }), shop), 'transform')
  const counters = countersOf(stage)
  assert.deepEqual(Object.keys(counters).length, 15, 'those that did nothing are there, too')
  assert.equal(counters['one matched'], 1)
  assert.equal(counters['three matched'], 0)
  assert.equal(counters['four dropped'], 1)
  assert.equal(counters['five matched'], 1)
})

test('a rule without actions only counts', () => {
  const stage = compile('{name: r, match: {attributes: {a: "*"}}, actions: []}', 'logs')!
  assert.equal(stage.log!(recordWith({ a: 1 }), shop), '')
  assert.equal(stage.log!(recordWith({}), shop), '')
  assert.deepEqual(countersOf(stage), { 'r matched': 1, 'r dropped': 0, 'r skipped': 0 })
})

test('of a metric every series is changed, dropped and counted by itself', () => {
  const stage = compile(
    [
      '{name: noise, match: {metric_names: [noise]}, actions: [{type: drop}]}',
      `{name: tag, match: {attributes: {cpu: "0"}}, actions: [${set('first', 'true')}]}`,
      '{name: late, match: {metric_names: [m], attributes: {cpu: "1"}}, actions: [{type: drop}]}',
    ].join(', '),
    'metrics',
  )!
  const run = (name: string) => {
    const metric = gaugeWith(name, { cpu: '0' }, { cpu: '1' })
    if (stage.metric!(metric, shop) !== '') return 'whole'
    return metric.points.map(
      ({ attributes }) => stage.series!(attributes, metric, shop) || attributes.toObject(),
    )
  }
  assert.deepEqual(run('m'), [{ cpu: '0', first: true }, 'transform'])
  assert.deepEqual(run('noise'), 'whole')
  assert.deepEqual(run('n'), [{ cpu: '0', first: true }, { cpu: '1' }])
  const { 'noise dropped': noise, 'tag matched': tag, 'late dropped': late } = countersOf(stage)
  assert.deepEqual([noise, tag, late], [2, 2, 1])
})

test('a metric is dropped whole only by rules that no other comes before', () => {
  const stage = compile(
    `{name: tag, actions: [${set('a', '1')}]}, {name: noise, match: {metric_names: [noise]}, actions: [{type: drop}]}`,
    'metrics',
  )!
  const metric = gaugeWith('noise', {})
  assert.equal(stage.metric!(metric, shop), '')
  assert.equal(stage.series!(metric.points[0]!.attributes, metric, shop), 'transform')
  assert.equal(countersOf(stage)['tag matched'], 1)
})

test('rules change the samples of a profile, and drop it only as a whole', () => {
  const stage = compile(
    `{name: tag, match: {attributes: {t: 1}}, actions: [${set('a', '1')}]}, {name: idle, match: {attributes: {idle: true}}, actions: [{type: drop}]}`,
    'profiles',
  )!
  const profile = profileWith({ t: 1 }, { t: 2 }, { idle: true })
  assert.equal(stage.profile!(profile, shop), '')
  assert.deepEqual(
    profile.samples.map(({ attributes }) => attributes.toObject()),
    [{ t: 1, a: 1 }, { t: 2 }, { idle: true }],
  )
  assert.deepEqual(countersOf(stage), {
    'tag matched': 1,
    'tag dropped': 0,
    'tag skipped': 0,
    'idle matched': 1,
    'idle dropped': 0,
    'idle skipped': 1,
  })
  assert.equal(stage.profile!(profileWith({ idle: true }, { idle: true }), shop), 'transform')
  assert.equal(countersOf(stage)['idle dropped'], 2)
  assert.equal(stage.profile!(profileWith(), shop), '')
})

test('resources are changed by a copy, once for each, and only where something changes', () => {
  const rules = [
    `{name: zone, match: {resource_attributes: {host.name: /^h/}}, actions: [{type: set_attribute, on: resource, set_attribute: {key: zone, value: z1}}]}`,
    '{name: hide, match: {resource_attributes: {zone: z1}}, actions: [{type: delete_attribute, on: resource, delete_attribute: {key: host.name}}]}',
    `{name: item, match: {resource_attributes: {zone: z1}}, actions: [${set('seen', '1')}]}`,
  ].join(', ')
  for (const signal of signals) {
    const stage = compile(rules, signal)!
    const changed = stage.resource!(shop)!
    assert.deepEqual(changed.attributes.toObject(), { 'service.name': 'shop', zone: 'z1' })
    assert.deepEqual(shop.attributes.toObject(), { 'service.name': 'shop', 'host.name': 'h1' })
    const other = resource({ 'host.name': 'other' })
    assert.equal(stage.resource!(other), other)
    assert.equal(countersOf(stage)['zone matched'], 1)
  }
  const stage = compile(rules, 'traces')!
  const span = spanWith({})
  stage.span!(span, stage.resource!(shop)!)
  assert.deepEqual(span.attributes.toObject(), { seen: 1 }, 'rules on items see the resource as it became')
})

test('a resource can be dropped with all its items', () => {
  const rule =
    '{name: gone, match: {signal_types: [logs], resource_attributes: {service.name: shop}}, actions: [{type: drop, on: resource}]}'
  const stage = compile(rule, 'logs')!
  assert.equal(stage.resource!(shop), undefined)
  assert.notEqual(stage.resource!(resource({ 'service.name': 'other' })), undefined)
  assert.deepEqual(countersOf(stage), { 'gone matched': 1, 'gone dropped': 1, 'gone skipped': 0 })
  assert.equal(compile(rule, 'traces'), undefined)
})

test('counters go on under new settings, for rules that stay', () => {
  const first = compile(`{name: a, actions: []}, {name: b, actions: []}`, 'traces')!
  first.span!(spanWith({}), shop)
  const second = compile(`{name: c, actions: []}, {name: a, actions: [{type: drop}]}`, 'traces', first)!
  second.span!(spanWith({}), shop)
  assert.deepEqual(countersOf(second), {
    'c matched': 1,
    'c dropped': 0,
    'c skipped': 0,
    'a matched': 2,
    'a dropped': 1,
    'a skipped': 0,
  })
})

test('what a rule cannot do is said with its name', () => {
  const rule = `{name: odd, actions: [{type: hash_attribute, hash_attribute: {key: a}}]}`
  const settings = settingsOf('transform', transformation, `transform: {enabled: true, rules: [${rule}]}`)
  const env = {
    signal: 'traces' as const,
    log: undefined as never,
    nowMs: () => 0,
    installKey(): Uint8Array {
      throw new Error('cannot read /var/lib/svc/install-key: permission denied')
    },
  }
  assert.throws(
    () => transform.compile(settings, env, undefined),
    /^Error: cannot use transform rule "odd": cannot read \/var\/lib/,
  )
})

/** The examples of docs/transform.md that configure something. */
function documentedExamples(): string[] {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/transform.md'), 'utf8')
  return [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml]) => yaml!)
}

test('every example of the documentation is good, and does what it says', () => {
  const examples = documentedExamples()
  assert.ok(examples.length >= 6)
  const below = branch('Test.', { pipeline: branch('Test.', { transform: transformation }) })
  const rules = examples.flatMap(yaml => {
    const { settings, problems } = read(below, yaml)
    assert.equal(problems, '', yaml)
    return settings.pipeline.transform.rules
  })
  const stage = (name: string, signal: Signal) => {
    const found = rules.filter(rule => rule.name === name)
    assert.equal(found.length, 1, name)
    return stageOf(transform, { transform: { enabled: true, rules: found } }, signal)!
  }
  const span = (name: string, given: object, entries = {}) => {
    const made = spanWith(entries, given)
    return stage(name, 'traces').span!(made, shop) || made.attributes.toObject()
  }
  assert.equal(span('health-checks', { name: 'GET /healthz', kind: SpanKind.server }), 'transform')
  assert.deepEqual(span('health-checks', { name: 'GET /users', kind: SpanKind.server }), {})
  assert.deepEqual(span('environment', {}), { 'deployment.environment.name': 'production' })
  assert.deepEqual(span('url-ids', {}, { 'url.path': '/users/17/orders/4' }), {
    'url.path': '/users/*/orders/*',
  })
  const { 'enduser.id': id } = span('pseudonyms', {}, { 'enduser.id': 'alice' }) as { 'enduser.id': string }
  assert.match(id, /^[0-9a-f]{64}$/)
  assert.equal(span('a-tenth', { traceId: new Uint8Array(16).fill(1) }), 'sampled')
  assert.deepEqual(span('a-tenth', { traceId: new Uint8Array(16).fill(255) }), {})

  const record = recordWith({}, { body: 'login failed user=alice from 10.0.0.7' })
  assert.equal(stage('logins', 'logs').log!(record, shop), '')
  assert.deepEqual(record.attributes.toObject(), { 'login.user': 'alice', 'login.address': '10.0.0.7' })
  assert.equal(record.severityText, 'WARN')
  assert.equal(stage('debug-records', 'logs').log!(recordWith({}, { severity: 5 }), shop), '')
  assert.equal(stage('no-go-metrics', 'metrics').metric!(gaugeWith('go_gc_duration', {}), shop), 'transform')
  const zoned = stage('zone', 'metrics').resource!(shop)!
  assert.equal(zoned.attributes.get('cloud.availability_zone'), 'eu-1a')
})
