import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { criticalPath, gapsOf, rowsOf, type Span, selfMs, treeOf } from './waterfall.ts'

function span(id: string, parent: string, start: number, end: number): Span {
  return {
    span_id: id,
    parent_id: parent,
    estimated_parent: false,
    name: id,
    kind: 'internal',
    resource: 0,
    service: 's',
    pid: 1,
    start_ms: start,
    duration_ms: end - start,
    error: false,
    status_message: '',
    attributes: {},
  }
}

const told = (spans: readonly Span[], stretches: readonly { span: number; from: number; to: number }[]) =>
  stretches.map(({ span, from, to }) => `${spans[span]?.span_id ?? '-'} ${from}-${to}`)

test('children stand below their parents, the earliest first', () => {
  const tree = treeOf([
    span('a', '', 0, 10),
    span('c', 'a', 5, 6),
    span('b', 'a', 1, 4),
    span('d', 'b', 2, 3),
  ])
  assert.deepEqual(
    tree.order.map(i => `${tree.spans[i]!.span_id}${tree.depth[i]}`),
    ['a0', 'b1', 'd2', 'c1'],
  )
  assert.deepEqual([...tree.size], [4, 1, 2, 1])
})

test('a span whose parent is not kept stands for itself and says so', () => {
  const tree = treeOf([span('a', 'gone', 0, 10), span('b', 'a', 1, 2), span('c', '', 3, 4)])
  assert.deepEqual([...tree.parent], [-1, 0, -1])
  assert.deepEqual(tree.oddity, ['lost', '', ''])
})

test('circles of parents are opened at the earliest span', () => {
  const tree = treeOf([
    span('x', 'x', 0, 1),
    span('a', 'c', 0, 9),
    span('b', 'a', 1, 8),
    span('c', 'b', 2, 7),
  ])
  assert.deepEqual([...tree.parent], [-1, -1, 1, 2])
  assert.deepEqual(tree.oddity, ['circle', 'circle', '', ''])
})

test('a child that begins before its parent is told', () => {
  const tree = treeOf([span('a', '', 5, 10), span('b', 'a', 1, 4)])
  assert.deepEqual(tree.oddity, ['', 'early'])
})

test('the critical path is what was waited for', () => {
  const spans = [
    span('root', '', 0, 100),
    span('auth', 'root', 5, 20),
    span('stock', 'root', 30, 60),
    span('pay', 'root', 30, 90),
    span('bank', 'pay', 40, 80),
  ]
  assert.deepEqual(told(spans, criticalPath(treeOf(spans), 100)), [
    'root 0-5',
    'auth 5-20',
    'root 20-30',
    'pay 30-40',
    'bank 40-80',
    'pay 80-90',
    'root 90-100',
  ])
})

test('a span that goes on after its parent is waited for by the trace', () => {
  const spans = [span('root', '', 0, 10), span('later', 'root', 5, 50)]
  assert.deepEqual(told(spans, criticalPath(treeOf(spans), 50)), ['root 0-5', 'later 5-50'])
})

test('what began such a span is waited for until then, as deep as it is', () => {
  const spans = [
    span('root', '', 0, 20),
    span('serve', 'root', 1, 19),
    span('read', 'serve', 2, 6),
    span('later', 'serve', 10, 50),
  ]
  assert.deepEqual(told(spans, criticalPath(treeOf(spans), 50)), [
    'root 0-1',
    'serve 1-2',
    'read 2-6',
    'serve 6-10',
    'later 10-50',
  ])
})

test('what nobody did is on no critical path', () => {
  const spans = [span('send', '', 0, 10), span('receive', 'send', 30, 50)]
  assert.deepEqual(told(spans, criticalPath(treeOf(spans), 50)), ['send 0-10', 'receive 30-50'])
})

test('gaps are where no call runs for more than a tenth', () => {
  const spans = [span('root', '', 0, 100), span('a', 'root', 5, 20), span('b', 'root', 60, 100)]
  assert.deepEqual(told(spans, gapsOf(treeOf(spans), 100)), ['root 20-60'])
  const inTurn = [
    span('a', '', 0, 40),
    span('a1', 'a', 0, 2),
    span('b', '', 30, 100),
    span('b1', 'b', 98, 100),
  ]
  assert.deepEqual(told(inTurn, gapsOf(treeOf(inTurn), 100)), ['a 2-40', 'b 40-98'])
  const apart = [span('a', '', 0, 10), span('b', '', 60, 100)]
  assert.deepEqual(told(apart, gapsOf(treeOf(apart), 100)), ['- 10-60'])
  const alone = [span('a', '', 0, 10)]
  assert.deepEqual(gapsOf(treeOf(alone), 10), [])
})

test('closed spans hide what lies below them', () => {
  const tree = treeOf([span('a', '', 0, 9), span('b', 'a', 1, 8), span('c', 'b', 2, 3), span('d', 'a', 4, 5)])
  assert.deepEqual(rowsOf(tree, new Set()), [0, 1, 2, 3])
  assert.deepEqual(rowsOf(tree, new Set([1])), [0, 1, 3])
  assert.deepEqual(rowsOf(tree, new Set([0])), [0])
})

test('time of a span itself leaves out its children, also where they overlap or go on', () => {
  const tree = treeOf([
    span('a', '', 0, 100),
    span('b', 'a', 10, 40),
    span('c', 'a', 20, 50),
    span('d', 'a', 90, 200),
  ])
  assert.equal(selfMs(tree, 0), 10 + 40)
  assert.equal(selfMs(tree, 1), 30)
})

test('whatever the spans are, each has one place and the critical path runs forward within the trace', () => {
  const one = fc.record({
    id: fc.integer({ min: 0, max: 12 }),
    parent: fc.option(fc.integer({ min: 0, max: 14 })),
    start: fc.integer({ min: 0, max: 50 }),
    length: fc.integer({ min: 0, max: 50 }),
  })
  fc.assert(
    fc.property(fc.array(one, { maxLength: 30 }), given => {
      const spans = given.map(({ id, parent, start, length }) =>
        span(String(id), parent === null ? '' : String(parent), start, start + length),
      )
      const end = Math.max(0, ...spans.map(each => each.start_ms + each.duration_ms))
      const tree = treeOf(spans)
      assert.deepEqual(
        [...tree.order].sort((a, b) => a - b),
        [...spans.keys()],
      )
      for (const [k, i] of tree.order.entries())
        assert.ok(tree.parent[i]! < 0 || tree.order.indexOf(tree.parent[i]!) < k)
      let before = 0
      for (const { span: i, from, to } of criticalPath(tree, end)) {
        assert.ok(from >= before && to > from && to <= end)
        assert.ok(spans[i]!.start_ms <= from && spans[i]!.start_ms + spans[i]!.duration_ms >= to)
        before = to
      }
      for (const { from, to } of gapsOf(tree, end)) assert.ok(to - from > end / 10)
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('a chain of 5,000 spans, each later than its parent, is no harder', () => {
  const spans = Array.from({ length: 5000 }, (_, i) => span(`${i}`, i === 0 ? '' : `${i - 1}`, i, i + 10))
  const tree = treeOf(spans)
  assert.equal(tree.depth[4999], 4999)
  assert.equal(criticalPath(tree, 5009).length, 5000)
})
