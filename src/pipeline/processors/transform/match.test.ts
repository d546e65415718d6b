import assert from 'node:assert/strict'
import test from 'node:test'
import {
  countersOf,
  gaugeWith,
  profileWith,
  recordWith,
  settingsOf,
  spanWith,
  stageOf,
} from '../../../../test/helpers/processor-stage.ts'
import type { AttributeValue } from '../../../foundation/model/attributes.ts'
import { resource } from '../../../foundation/model/resource.ts'
import { type Signal, signals } from '../../../foundation/model/signal.ts'
import { SpanKind, StatusCode } from '../../../foundation/model/span.ts'
import type { Stage } from '../processor.ts'
import { transform } from '../transform.ts'
import { transformation } from './settings.ts'

/** A stage with one rule that drops what `match` finds, undefined where it can find nothing. */
function dropping(match: string, signal: Signal): Stage | undefined {
  const yaml = `transform: {enabled: true, rules: [{name: r, match: ${match}, actions: [{type: drop}]}]}`
  return stageOf(transform, settingsOf('transform', transformation, yaml), signal)
}

type Entries = Readonly<Record<string, AttributeValue>>
const shop = resource({ 'service.name': 'shop', 'process.pid': 42 })

/** Puts one item of a signal through a stage: whether it was dropped. */
const through: { readonly [S in Signal]: (stage: Stage, entries: Entries) => boolean } = {
  traces: (stage, entries) => stage.span!(spanWith(entries), shop) !== '',
  logs: (stage, entries) => stage.log!(recordWith(entries), shop) !== '',
  metrics(stage, entries) {
    const metric = gaugeWith('m', entries)
    if (stage.metric!(metric, shop) !== '') return true
    return stage.series!(metric.points[0]!.attributes, metric, shop) !== ''
  },
  profiles: (stage, entries) => stage.profile!(profileWith(entries), shop) !== '',
}

test('of every signal, items are found by their attributes', () => {
  const check = (match: string, entries: Entries, want: boolean) => {
    for (const signal of signals) {
      const stage = dropping(`{attributes: ${match}}`, signal)!
      assert.equal(through[signal](stage, entries), want, `${signal} ${match} ${JSON.stringify(entries)}`)
      assert.equal(countersOf(stage)['r matched'], Number(want))
    }
  }
  check('{a: x}', { a: 'x' }, true)
  check('{a: x}', { a: 'xy' }, false)
  check('{a: x}', { b: 'x' }, false)
  check('{a: ""}', { a: '' }, true)
  check('{a: ""}', {}, false)
  check('{a: "*"}', { a: '' }, true)
  check('{a: "*"}', { b: 1 }, false)
  check('{a: /x/}', { a: 'axb' }, true)
  check('{a: /^x/}', { a: 'axb' }, false)
  check('{a: "/(?i)^X$/"}', { a: 'x' }, true)
  check('{a: /./}', {}, false)
  check('{a: x, b: y}', { a: 'x', b: 'y' }, true)
  check('{a: x, b: y}', { a: 'x', b: 'z' }, false)
})

test('numbers, booleans and lists are found by their text', () => {
  const check = (wanted: string, value: AttributeValue, want: boolean) =>
    assert.equal(through.traces(dropping(`{attributes: {a: ${wanted}}}`, 'traces')!, { a: value }), want)
  check('500', 500, true)
  check('"500"', 500, true)
  check('500', '500', true)
  check('500', 501, false)
  check('0.5', 0.5, true)
  check('0x10', 16, true)
  check('"0x10"', 16, false)
  check('/^5..$/', 503, true)
  check('/^5..$/', 5030, false)
  check('NaN', Number.NaN, true)
  check('true', true, true)
  check('true', false, false)
  check('/fal/', false, true)
  check('x', ['y', 'x'], true)
  check('x', ['y'], false)
  check('/^y/', ['x', 'yz'], true)
  check('x', [], false)
})

test('of every signal, items are found by their resource', () => {
  const check = (match: string, want: boolean) => {
    for (const signal of signals) {
      const stage = dropping(`{resource_attributes: ${match}}`, signal)!
      for (const entries of [{}, { 'service.name': 'other' }])
        assert.equal(through[signal](stage, entries), want, `${signal} ${match}`)
    }
  }
  check('{service.name: shop}', true)
  check('{service.name: other}', false)
  check('{service.name: /^sh/}', true)
  check('{service.name: shop, process.pid: 42}', true)
  check('{service.name: shop, process.pid: 43}', false)
  check('{host.name: "*"}', false)
})

test('each resource is judged by itself', () => {
  const stage = dropping('{resource_attributes: {service.name: shop}}', 'traces')!
  const other = resource({ 'service.name': 'other' })
  const verdicts = [shop, other, shop, other].map(each => stage.span!(spanWith({}), each))
  assert.deepEqual(verdicts, ['transform', '', 'transform', ''])
})

test('a rule acts on the signals that it names, and without names on all', () => {
  const check = (match: string, want: readonly Signal[]) =>
    assert.deepEqual(
      signals.filter(signal => dropping(match, signal) !== undefined),
      want,
      match,
    )
  check('{}', signals)
  check('{signal_types: [logs]}', ['logs'])
  check('{signal_types: [traces, profiles]}', ['traces', 'profiles'])
  check('{metric_names: [a]}', ['metrics'])
  check('{span_names: [a]}', ['traces'])
  check('{span_kinds: [server]}', ['traces'])
  check('{span_status: error}', ['traces'])
  check('{log_bodies: [a]}', ['logs'])
  check('{min_severity: warn}', ['logs'])
  check('{signal_types: [logs, traces], span_status: unset}', ['traces'])
  for (const signal of signals)
    assert.equal(through[signal](dropping(`{signal_types: [${signal}]}`, signal)!, {}), true)
})

test('metrics are found by their names', () => {
  const check = (match: string, name: string, want: boolean) => {
    const stage = dropping(match, 'metrics')!
    const metric = gaugeWith(name, { a: 'x' })
    const whole = stage.metric!(metric, shop) !== ''
    assert.equal(whole || stage.series!(metric.points[0]!.attributes, metric, shop) !== '', want, match)
  }
  check('{metric_names: [system.cpu.time]}', 'system.cpu.time', true)
  check('{metric_names: [system.cpu.time]}', 'system_cpu_time', false)
  check('{metric_names: [a, b]}', 'b', true)
  check('{metric_names: [/^go_/]}', 'go_gc', true)
  check('{metric_names: [/^go_/, x]}', 'ago_gc', false)
  check('{metric_names: [m], attributes: {a: x}}', 'm', true)
  check('{metric_names: [m], attributes: {a: y}}', 'm', false)
  check('{metric_names: [n], attributes: {a: x}}', 'm', false)
})

test('a metric is dropped as a whole where its attributes do not matter, and all its points count', () => {
  const stage = dropping('{metric_names: [m]}', 'metrics')!
  assert.equal(stage.metric!(gaugeWith('m', {}, { a: 1 }, { a: 2 }), shop), 'transform')
  assert.equal(stage.metric!(gaugeWith('n', {}), shop), '')
  assert.deepEqual(countersOf(stage), { 'r matched': 3, 'r dropped': 3, 'r skipped': 0 })
  const bySeries = dropping('{metric_names: [m], attributes: {a: 1}}', 'metrics')!
  assert.equal(bySeries.metric!(gaugeWith('m', {}), shop), '')
})

test('spans are found by name, kind and status', () => {
  const check = (match: string, want: boolean) => {
    const span = spanWith({}, { name: 'GET /users/*', kind: SpanKind.server, status: StatusCode.error })
    assert.equal(dropping(match, 'traces')!.span!(span, shop) !== '', want, match)
  }
  check('{span_names: [GET /users/*]}', true)
  check('{span_names: [GET]}', false)
  check('{span_names: [GET, /^GET/]}', true)
  check('{span_names: [/^POST/]}', false)
  check('{span_names: [""]}', false)
  check('{span_kinds: [server]}', true)
  check('{span_kinds: [client, producer]}', false)
  check('{span_kinds: [client, server]}', true)
  check('{span_kinds: [internal]}', false)
  check('{span_kinds: [consumer]}', false)
  check('{span_status: error}', true)
  check('{span_status: unset}', false)
  check('{span_status: any}', true)
  check('{span_status: error, span_kinds: [server], span_names: [/users/]}', true)
  check('{span_status: error, span_kinds: [client], span_names: [/users/]}', false)
})

test('log records are found by body and severity', () => {
  const check = (match: string, want: boolean, severity = 13) => {
    const record = recordWith({}, { body: 'user alice logged in', severity })
    assert.equal(dropping(match, 'logs')!.log!(record, shop) !== '', want, match)
  }
  check('{log_bodies: [alice]}', true)
  check('{log_bodies: ["^alice"]}', false)
  check('{log_bodies: [bob, "logged (in|out)$"]}', true)
  check('{log_bodies: ["(?i)ALICE"]}', true)
  check('{log_bodies: [bob, carol]}', false)
  check('{min_severity: warn}', true)
  check('{min_severity: WARN2}', false)
  check('{min_severity: error}', false)
  check('{min_severity: 13}', true)
  check('{min_severity: 14}', false)
  check('{min_severity: trace}', false, 0)
  check('{min_severity: ""}', true, 0)
  check('{min_severity: info, log_bodies: [alice]}', true)
  check('{min_severity: info, log_bodies: [bob]}', false)
})
