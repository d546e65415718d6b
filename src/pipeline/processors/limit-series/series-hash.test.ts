import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import { type Resource, resource } from '../../../foundation/model/resource.ts'
import { ownCopy, SeriesHash } from './series-hash.ts'

const shop = resource({ 'service.name': 'shop' })

function hashOf(attributes: Attributes, of: Resource = shop, metric = 'm', scope = ''): string {
  const hash = new SeriesHash('content')
  hash.begin(of, scope, metric)
  hash.of(attributes)
  return `${hash.low} ${hash.high}`
}

test('a series is the same in every order of its attributes', () => {
  fc.assert(
    fc.property(arbitrary.attributes, set => {
      const backwards = new Attributes()
      for (let i = set.size - 1; i >= 0; i--) backwards.add(set.keys[i]!, set.values[i]!)
      assert.equal(hashOf(set), hashOf(backwards))
    }),
  )
})

test('series that differ in a key, a value, its type, the metric, the scope or the resource are others', () => {
  const values: AttributeValue[] = [
    '',
    'a',
    'b',
    'aa',
    0,
    1,
    '1',
    1.5,
    -1,
    true,
    false,
    'true',
    [],
    ['a'],
    ['a', 'b'],
  ]
  values.push(['b', 'a'], ['ab'], Number.NaN, 2 ** 53, 2 ** 53 - 1, 'ü', 'x'.repeat(100), 'x'.repeat(101))
  const seen = new Map<string, string>()
  const check = (what: string, hash: string) => {
    assert.equal(seen.get(hash), undefined, what)
    seen.set(hash, what)
  }
  for (const value of values) check(`a=${value}`, hashOf(Attributes.of({ a: value })))
  for (const value of values) check(`b=${value}`, hashOf(Attributes.of({ b: value })))
  check('swapped', hashOf(Attributes.of({ a: 'b', b: 'a' })))
  check('not swapped', hashOf(Attributes.of({ a: 'a', b: 'b' })))
  check('none', hashOf(new Attributes()))
  check('another metric', hashOf(new Attributes(), shop, 'n'))
  check('another scope', hashOf(new Attributes(), shop, 'm', 's'))
  check('another resource', hashOf(new Attributes(), resource({ 'service.name': 'cart' })))
})

test('many similar series do not collide', () => {
  const hash = new SeriesHash('content')
  const attributes = new Attributes()
  const seen = new Set<string>()
  const count = soak ? 1_000_000 : 100_000
  hash.begin(shop, 'svc', 'm')
  for (let i = 0; i < count; i++) {
    attributes.clear()
    attributes.add('id', String(i % 1000))
    attributes.add('shard', Math.floor(i / 1000))
    hash.of(attributes)
    seen.add(`${hash.low} ${hash.high}`)
  }
  assert.equal(seen.size, count)
})

test('resources with the same attributes are one by content and two by identity', () => {
  const twin = resource({ 'service.name': 'shop' })
  const check = (by: 'content' | 'identity', same: boolean) => {
    const hash = new SeriesHash(by)
    hash.begin(shop, '', 'm')
    hash.of(new Attributes())
    const { low, high } = hash
    hash.begin(twin, '', 'm')
    hash.of(new Attributes())
    assert.equal(hash.low === low && hash.high === high, same)
    hash.begin(shop, '', 'm')
    hash.of(new Attributes())
    assert.deepEqual([hash.low, hash.high], [low, high])
  }
  check('content', true)
  check('identity', false)
})

test('a value of 10 MB takes linear time, and so do names without end', () => {
  const begin = performance.now()
  hashOf(Attributes.of({ a: 'x'.repeat(10_000_000) }))
  const hash = new SeriesHash('content')
  for (let i = 0; i < 20_000; i++) hash.begin(shop, '', `made.up.${i}`)
  assert.ok(performance.now() - begin < 5000)
})

test('an own copy is the same text', () => {
  for (const text of ['', 'a', 'a text that is longer than twelve', 'größe'.repeat(10)])
    assert.equal(ownCopy(text), text)
})
