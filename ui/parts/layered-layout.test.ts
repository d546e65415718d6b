import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../test/helpers/soak.ts'
import { type Layout, type LayoutEdge, layeredLayout } from './layered-layout.ts'

const gaps = { gapX: 40, gapY: 10 }
const size = { width: 100, height: 30 }
const named = (...ids: string[]) => ids.map(id => ({ id, ...size }))
const edge = (text: string): LayoutEdge => {
  const [from = '', to = ''] = text.split('>')
  return { from, to }
}
const layerOf = (layout: Layout, id: string) => layout.places.get(id)!.layer

test('who asks stands left of who is asked', () => {
  const layout = layeredLayout(
    named('redis', 'front', 'cart', 'pay'),
    ['front>cart', 'cart>redis', 'front>pay', 'pay>redis', 'front>redis'].map(edge),
    gaps,
  )
  assert.deepEqual(
    ['front', 'cart', 'pay', 'redis'].map(id => layerOf(layout, id)),
    [0, 1, 1, 2],
  )
  assert.equal(layout.width, 3 * 100 + 2 * 40)
  const lane = 10
  assert.equal(layout.height, 2 * 30 + lane + 2 * 10)
})

test('an edge that skips layers runs behind no node', () => {
  const layout = layeredLayout(
    named('front', 'cart', 'pay', 'stock', 'redis'),
    ['front>cart', 'front>pay', 'cart>stock', 'pay>stock', 'stock>redis', 'front>redis', 'redis>front'].map(
      edge,
    ),
    gaps,
  )
  const there = layout.passes.get('front\nredis')!
  assert.equal(there.length, 2, 'the layers of cart and of stock')
  assert.deepEqual(layout.passes.get('redis\nfront'), there.toReversed())
  assert.equal(layout.passes.get('front\ncart'), undefined)
  for (const { left, right, y } of there) {
    assert.equal(right - left, size.width)
    const inColumn = [...layout.places.values()].filter(place => place.x === left)
    assert.ok(inColumn.length > 0)
    for (const place of inColumn) assert.ok(y < place.y || y > place.y + size.height, `${y} ${place.y}`)
  }
  assert.deepEqual([...layout.places.keys()].sort(), ['cart', 'front', 'pay', 'redis', 'stock'])
})

test('nodes that were there keep their order when a call comes that skips a layer', () => {
  const nodes = named('a', 'b', 'c', 'x', 'y', 'z')
  const edges = ['a>x', 'b>y', 'c>x', 'x>z', 'y>z'].map(edge)
  const first = layeredLayout(nodes, edges, gaps)
  const more = layeredLayout(nodes, [...edges, edge('b>z')], { ...gaps, before: first })
  assert.equal(more.passes.get('b\nz')?.length, 1)
  const order = (layout: Layout, ids: readonly string[]) =>
    ids.toSorted((left, right) => layout.places.get(left)!.y - layout.places.get(right)!.y)
  for (const ids of [
    ['a', 'b', 'c'],
    ['x', 'y'],
  ])
    assert.deepEqual(order(more, ids), order(first, ids))
})

test('edges do not cross where they need not', () => {
  const layout = layeredLayout(named('a', 'b', 'x', 'y'), ['a>y', 'b>x'].map(edge), gaps)
  const y = (id: string) => layout.places.get(id)!.y
  assert.equal(y('a') < y('b'), y('y') < y('x'))
})

test('circles, loops and edges to nowhere are placed, too', () => {
  const layout = layeredLayout(
    named('front', 'a', 'b', 'c'),
    ['front>a', 'a>b', 'b>c', 'c>a', 'a>a', 'a>nowhere'].map(edge),
    gaps,
  )
  assert.deepEqual(
    ['front', 'a', 'b', 'c'].map(id => layerOf(layout, id)),
    [0, 1, 2, 3],
  )
})

test('what was there keeps its order when numbers change and when something comes', () => {
  const nodes = named('a', 'b', 'c', 'x')
  const first = layeredLayout(nodes, ['a>x', 'b>x', 'c>x'].map(edge), gaps)
  const again = layeredLayout([...nodes].reverse(), ['c>x', 'b>x', 'a>x'].map(edge), {
    ...gaps,
    before: first,
  })
  assert.deepEqual([...again.places].sort(), [...first.places].sort())
  const more = layeredLayout([...named('d'), ...nodes], ['d>x', 'a>x', 'b>x', 'c>x'].map(edge), {
    ...gaps,
    before: first,
  })
  const order = (layout: Layout) =>
    ['a', 'b', 'c'].sort((left, right) => layout.places.get(left)!.y - layout.places.get(right)!.y)
  assert.deepEqual(order(more), order(first))
})

test('no two nodes lie upon each other, whatever the graph', () => {
  const id = fc.integer({ min: 0, max: 12 }).map(String)
  const edges = fc.array(fc.record({ from: id, to: id }), { maxLength: 60 })
  fc.assert(
    fc.property(fc.uniqueArray(id), edges, (ids, all) => {
      const { places, passes, width, height } = layeredLayout(named(...ids), all, gaps)
      assert.equal(places.size, ids.length)
      const seen = new Set<string>()
      for (const { x, y } of places.values()) {
        assert.ok(x >= 0 && x + size.width <= width && y >= 0 && y + size.height <= height + 1e-9)
        seen.add(`${x} ${y}`)
      }
      assert.equal(seen.size, ids.length)
      for (const { left, y } of [...passes.values()].flat())
        for (const place of places.values())
          assert.ok(place.x !== left || y < place.y || y > place.y + size.height)
    }),
    { numRuns: soak ? 10_000 : 300 },
  )
})
