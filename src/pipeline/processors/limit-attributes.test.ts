import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  countersOf,
  gaugeWith,
  profileWith,
  recordWith,
  settingsOf,
  spanWith,
  stageOf,
} from '../../../test/helpers/processor-stage.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import { resource } from '../../foundation/model/resource.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { limitAttributes } from './limit-attributes.ts'
import { limits } from './limit-settings.ts'
import type { Stage } from './processor.ts'

const numRuns = soak ? 5000 : 300
const shop = resource({ 'service.name': 'shop' })

function compile(attributes: string, signal: Signal = 'traces', before?: Stage): Stage | undefined {
  const settings = settingsOf('limits', limits, `limits: {attributes: {${attributes}}}`)
  return stageOf(limitAttributes, settings, signal, before)
}

type Entries = Readonly<Record<string, AttributeValue>>

/** What the bounds leave of a span's attributes. */
function bounded(attributes: string, entries: Entries): { left: Entries; dropped: number; stage: Stage } {
  const stage = compile(attributes)!
  const span = spanWith(entries)
  assert.equal(stage.span!(span, shop), '')
  return { left: span.attributes.toObject(), dropped: span.droppedAttributes, stage }
}

test('values are cut between two characters', () => {
  const check = (value: AttributeValue, want: AttributeValue, truncated = 1) => {
    const { left, dropped, stage } = bounded('max_attribute_value_size: 6', { a: value })
    assert.deepEqual(left, { a: want })
    assert.equal(dropped, 0)
    assert.equal(countersOf(stage)['max_attribute_value_size truncated'], truncated)
  }
  check('abcdef', 'abcdef', 0)
  check('abcdefg', 'abcdef')
  check('äöü', 'äöü', 0)
  check('äöüx', 'äöü')
  check('€€€', '€€')
  check('ab😀😀', 'ab😀')
  check('x😀😀', 'x😀')
  check('abc😀', 'abc')
  check('\ud800\ud800x', '\ud800\ud800')
  check(123_456_789, 123_456_789, 0)
  check(true, true, 0)
})

test('lists of texts are bounded in each and in sum', () => {
  const check = (value: readonly string[], want: readonly string[]) => {
    const { left, stage } = bounded('max_attribute_value_size: 6', { a: value })
    assert.deepEqual(left, { a: want })
    assert.equal(
      countersOf(stage)['max_attribute_value_size truncated'],
      Number(want.length !== value.length || want.join() !== value.join()),
    )
  }
  check(['abc', 'def'], ['abc', 'def'])
  check(['abcdefg'], ['abcdef'])
  check(['abcd', 'efg', 'h'], ['abcd', 'ef'])
  check(['abcdef', 'g'], ['abcdef'])
  check(['abcd', '€', 'x'], ['abcd'])
  check(['', '', '', '', '', '', '', ''], ['', '', '', '', '', ''])
  check([], [])
})

test('attributes with too long keys go, and are counted in the item', () => {
  const { left, dropped, stage } = bounded('max_attribute_key_size: 4, protected_attributes: [protected]', {
    abcd: 1,
    abcde: 2,
    äö: 3,
    äöü: 4,
    protected: 5,
  })
  assert.deepEqual(left, { abcd: 1, äö: 3, protected: 5 })
  assert.equal(dropped, 2)
  assert.equal(countersOf(stage)['max_attribute_key_size dropped'], 2)
})

test('of too many attributes those that came later go, but none that is protected', () => {
  const check = (most: number, keys: string, want: string, dropped: number) => {
    const entries = Object.fromEntries(keys.split('').map(key => [key, key]))
    const result = bounded(`max_attributes: ${most}, protected_attributes: [P, Q]`, entries)
    assert.equal(Object.keys(result.left).join(''), want)
    assert.equal(result.dropped, dropped)
    assert.equal(countersOf(result.stage)['max_attributes dropped'], dropped)
  }
  check(3, 'abc', 'abc', 0)
  check(3, 'abcd', 'abc', 1)
  check(3, 'abcP', 'abP', 1)
  check(3, 'PabcQ', 'PaQ', 2)
  check(2, 'abPQ', 'PQ', 2)
  check(1, 'aPbQ', 'PQ', 2)
  check(4, 'abcdefQgP', 'abQP', 5)
})

test('the count of what was dropped is of this item, not of one before it', () => {
  const stage = compile('max_attributes: 1')!
  const span = spanWith({ a: 1, b: 2, c: 3 })
  stage.span!(span, shop)
  assert.equal(span.droppedAttributes, 2)
  stage.span!(span, shop)
  assert.equal(span.droppedAttributes, 0)
  const record = recordWith({ a: 1, b: 2 })
  compile('max_attributes: 1', 'logs')!.log!(record, shop)
  assert.equal(record.droppedAttributes, 1)
})

test('names, messages and bodies are bounded, too', () => {
  const span = spanWith({}, { name: 'abcdefg', statusMessage: 'hijklmn' })
  const stage = compile('max_attribute_value_size: 3')!
  stage.span!(span, shop)
  assert.deepEqual([span.name, span.statusMessage], ['abc', 'hij'])
  assert.equal(countersOf(stage)['max_attribute_value_size truncated'], 2)

  const record = recordWith({}, { body: 'äöüabc', severityText: 'warning', eventName: 'some.event' })
  const logs = compile('max_attribute_value_size: 3, max_body_size: 7', 'logs')!
  logs.log!(record, shop)
  assert.deepEqual([record.body, record.severityText, record.eventName], ['äöüa', 'war', 'som'])
  assert.equal(countersOf(logs)['max_body_size truncated'], 1)
})

test('a body of usual length stays whole', () => {
  const record = recordWith({}, { body: 'x'.repeat(262_144) })
  const stage = compile('', 'logs')!
  stage.log!(record, shop)
  assert.equal(record.body.length, 262_144)
  record.body += 'x'
  stage.log!(record, shop)
  assert.equal(record.body.length, 262_144)
})

test('series and samples are bounded', () => {
  const metric = gaugeWith('m', { a: 'xxxx', b: 1, c: 2 })
  const metrics = compile('max_attributes: 2, max_attribute_value_size: 2', 'metrics')!
  assert.equal(metrics.series!(metric.points[0]!.attributes, metric, shop), '')
  assert.deepEqual(metric.points[0]!.attributes.toObject(), { a: 'xx', b: 1 })
  assert.equal(countersOf(metrics)['max_attribute_value_size truncated'], 1)

  const profile = profileWith({ a: 'xxxx', b: 1 }, { c: 1 })
  compile('max_attributes: 1, max_attribute_value_size: 2', 'profiles')!.profile!(profile, shop)
  assert.deepEqual(
    profile.samples.map(({ attributes }) => attributes.toObject()),
    [{ a: 'xx' }, { c: 1 }],
  )
})

test('what foreign scopes say is bounded by a copy', () => {
  const stage = compile('max_attributes: 1, max_attribute_value_size: 4', 'metrics')!
  const scope = { name: 'library', version: '1.0', attributes: Attributes.of({ a: 'xxxxx', b: 1 }) }
  const { name, version, attributes } = stage.scope!(scope)
  assert.deepEqual([name, version, attributes?.toObject()], ['libr', '1.0', { a: 'xxxx' }])
  assert.equal(scope.attributes.size, 2)
  const own = { name: 'svc', version: '1' }
  assert.equal(stage.scope!(own), own)
})

test('resources are bounded by a copy, and stay the same where nothing is cut', () => {
  for (const signal of signals) {
    const stage = compile(
      'max_resource_attributes: 2, max_attribute_value_size: 4, protected_attributes: [service.name]',
      signal,
    )!
    const large = resource({ a: 'abcdef', b: 'b', 'service.name': 'shop' })
    assert.deepEqual(stage.resource!(large)!.attributes.toObject(), { a: 'abcd', 'service.name': 'shop' })
    assert.equal(large.attributes.size, 3)
    assert.equal(large.attributes.get('a'), 'abcdef')
    assert.equal(stage.resource!(shop), shop)
    const list = resource({ a: ['abc', 'de'] })
    assert.deepEqual(stage.resource!(list)!.attributes.toObject(), { a: ['abc', 'd'] })
    assert.equal(countersOf(stage)['max_resource_attributes dropped'], 1)
  }
})

test('every counter is there before anything happens, and goes on under new settings', () => {
  const stage = compile('')!
  assert.deepEqual(countersOf(stage), {
    'max_resource_attributes dropped': 0,
    'max_attributes dropped': 0,
    'max_attribute_key_size dropped': 0,
    'max_attribute_value_size truncated': 0,
    'max_body_size truncated': 0,
  })
  const first = compile('max_attributes: 1')!
  first.span!(spanWith({ a: 1, b: 2 }), shop)
  const second = compile('max_attributes: 2', 'traces', first)!
  second.span!(spanWith({ a: 1, b: 2, c: 3 }), shop)
  assert.equal(countersOf(second)['max_attributes dropped'], 2)
  assert.equal(compile('enabled: false'), undefined)
})

test('whatever comes, what is left is within the bounds, in order and of the same items', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'ü', '€', '😀', '\ud800', '\udc00'), maxLength: 30 })
  const value = fc.oneof(text, fc.integer(), fc.boolean(), fc.array(text, { maxLength: 6 }))
  const bytesOf = (each: AttributeValue) =>
    typeof each === 'string'
      ? Buffer.byteLength(each)
      : typeof each === 'object'
        ? Buffer.byteLength(each.join(''))
        : 0
  const check = ({ keys, values, size }: Attributes, before: readonly string[], most: number) => {
    const left = keys.slice(0, size)
    assert.deepEqual(
      left,
      before.filter(key => left.includes(key)),
    )
    assert.ok(size <= Math.max(most, left.filter(key => key === 'a').length))
    for (let i = 0; i < size; i++) {
      assert.ok(bytesOf(values[i]!) <= 17)
      assert.ok(keys[i] === 'a' || Buffer.byteLength(keys[i]!) <= 9)
    }
  }
  fc.assert(
    fc.property(
      fc.dictionary(text, value, { maxKeys: 12, noNullPrototype: true }),
      fc.integer({ min: 1, max: 8 }),
      (entries, most) => {
        const stage = compile(
          `max_attributes: ${most}, max_attribute_value_size: 17, max_attribute_key_size: 9, protected_attributes: [a]`,
        )!
        const span = spanWith(entries)
        stage.span!(span, shop)
        check(span.attributes, Object.keys(entries), most)
        assert.equal(span.attributes.size + span.droppedAttributes, Object.keys(entries).length)
        assert.equal(span.attributes.get('a') === undefined, entries.a === undefined)
        const once = span.attributes.toObject()
        stage.span!(span, shop)
        assert.deepEqual(span.attributes.toObject(), once, 'a second look changes nothing')
      },
    ),
    { numRuns },
  )
})

test('a hundred thousand attributes take linear time, and leave no large arrays behind', () => {
  const span = spanWith({})
  for (let i = 0; i < 100_000; i++) span.attributes.add(`key.${i}`, `value ${i}`)
  span.attributes.add('service.name', 'shop')
  const stage = compile('')!
  const started = performance.now()
  stage.span!(span, shop)
  // Quadratic time would be minutes.
  assert.ok(performance.now() - started < 20_000)
  assert.equal(span.attributes.size, 128)
  assert.equal(span.attributes.get('service.name'), 'shop')
  assert.equal(span.droppedAttributes, 99_873)
  assert.equal(span.attributes.keys.length, 128)
})
