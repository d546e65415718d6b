import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { type FlameColumns, type FlameTree, flameTree } from './flame-tree.ts'
import {
  eachBar,
  leastBarPx,
  moved,
  neighbour,
  nodeAt,
  rowsOf,
  type View,
  viewOf,
  zoomed,
} from './icicle-layout.ts'

const runs = soak ? 1000 : 60

/** Children of random earlier nodes; some without a value. */
const trees = fc
  .array(fc.tuple(fc.nat(1e6), fc.oneof(fc.constant(0), fc.nat(3), fc.nat(5000))), {
    minLength: 1,
    maxLength: 300,
  })
  .map(all => randomTree(all))

function randomTree(nodes: readonly (readonly [above: number, self: number])[]): FlameTree {
  const parent = [-1, ...nodes.map(([above], i) => above % (i + 1))]
  const self = [0, ...nodes.map(([, value]) => value)]
  const sum = [...self]
  for (let at = sum.length - 1; at > 0; at--) sum[parent[at]!]! += sum[at]!
  const zeros = parent.map(() => 0)
  const columns: FlameColumns = {
    names: parent.map((_, i) => `f${i}`),
    files: [''],
    types: [''],
    parent,
    name: parent.map((_, i) => i),
    file: zeros,
    type: zeros,
    self,
    sum,
    base: [],
  }
  return flameTree(columns)
}

/** The bars of a row, by looking at each node. */
function plainBars(tree: FlameTree, row: number, view: View, widthPx: number): number[] {
  const scale = widthPx / (view.right - view.left)
  const bars: number[] = []
  for (let node = 0; node < tree.count; node++) {
    if (tree.depth[node] !== row || tree.sum[node]! * scale < leastBarPx) continue
    const from = Math.max(0, (tree.left[node]! - view.left) * scale)
    const to = Math.min(widthPx, (tree.left[node]! + tree.sum[node]! - view.left) * scale)
    if (to - from >= leastBarPx) bars.push(node)
  }
  return bars
}

test('a row has the bars that are seen and wide enough, cut at both sides, in order', () => {
  fc.assert(
    fc.property(trees, fc.nat(1e6), fc.integer({ min: 1, max: 500 }), (tree, pick, widthPx) => {
      const view = viewOf(tree, pick % tree.count)
      for (let row = 0; row + 1 < tree.rowStart.length; row++) {
        const bars: number[] = []
        let edge = 0
        eachBar(tree, row, view, widthPx, (node, x, width) => {
          assert.ok(width >= leastBarPx && x >= edge - 1e-6 && x + width <= widthPx + 1e-6)
          edge = x + width
          bars.push(node)
        })
        assert.deepEqual(bars, plainBars(tree, row, view, widthPx))
      }
    }),
    { numRuns: runs },
  )
})

test('the node at the middle of a bar is that of the bar, and beside all bars there is none', () => {
  fc.assert(
    fc.property(trees, tree => {
      for (let node = 0; node < tree.count; node++)
        if (tree.sum[node]! > 0)
          assert.equal(nodeAt(tree, tree.depth[node]!, tree.left[node]! + tree.sum[node]! / 2), node)
      assert.equal(nodeAt(tree, 0, tree.sum[0]! + 1), -1)
      assert.equal(nodeAt(tree, 0, -1), -1)
      assert.equal(nodeAt(tree, tree.rowStart.length, 0), -1)
    }),
    { numRuns: runs },
  )
})

test('arrows lead to the parent, to the first child and through all siblings, and back', () => {
  fc.assert(
    fc.property(trees, tree => {
      for (let node = 0; node < tree.count; node++) {
        const children: number[] = []
        for (let at = 1; at < tree.count; at++) if (tree.parent[at] === node) children.push(at)
        assert.equal(neighbour(tree, node, 'down'), children[0] ?? node)
        for (const [i, child] of children.entries()) {
          assert.equal(neighbour(tree, child, 'up'), node)
          assert.equal(neighbour(tree, child, 'right'), children[i + 1] ?? child)
          assert.equal(neighbour(tree, child, 'left'), children[i - 1] ?? child)
        }
      }
      for (const direction of ['up', 'left', 'right'] as const) assert.equal(neighbour(tree, 0, direction), 0)
    }),
    { numRuns: runs },
  )
})

test('a zoom is as wide as the node, one without a width as its parent', () => {
  const tree = randomTree([
    [0, 10],
    [0, 30],
    [1, 0],
  ])
  assert.deepEqual(viewOf(tree, 0), { left: 0, right: 40 })
  assert.deepEqual(viewOf(tree, 2), { left: 0, right: 10 })
  assert.deepEqual(viewOf(tree, 3), { left: 10, right: 40 })
  assert.deepEqual([rowsOf(tree, 0), rowsOf(tree, 1), rowsOf(tree, 3)], [3, 3, 2])
})

test('a view stays within its bounds however it is moved and zoomed', () => {
  const bounds = { left: 10, right: 110 }
  const steps = fc.array(
    fc.oneof(
      fc.record({ by: fc.double({ min: -500, max: 500, noNaN: true }) }),
      fc.record({
        factor: fc.double({ min: 0.01, max: 50, noNaN: true }),
        around: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    ),
  )
  fc.assert(
    fc.property(steps, all => {
      let view: View = bounds
      for (const step of all) {
        view =
          'by' in step
            ? moved(view, step.by, bounds)
            : zoomed(view, step.factor, view.left + step.around * (view.right - view.left), bounds)
        assert.ok(view.left >= 10 && view.right <= 110 + 1e-6 && view.right > view.left)
      }
    }),
    { numRuns: runs },
  )
  assert.deepEqual(zoomed({ left: 20, right: 40 }, 0.5, 25, bounds), { left: 22.5, right: 32.5 })
})

test('a hundred thousand frames are laid out in rows that are read without looking at each', () => {
  let seed = 1
  const next = (below: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return seed % below
  }
  const tree = randomTree(
    Array.from({ length: 99_999 }, (_, i) => [i < 50 ? i : i + 1 - next(Math.min(i, 4000)), next(100)]),
  )
  assert.equal(tree.count, 100_000)
  let bars = 0
  for (let row = 0; row + 1 < tree.rowStart.length; row++)
    eachBar(tree, row, viewOf(tree, 0), 1200, () => bars++)
  assert.ok(bars > 0 && bars <= 2400 * (tree.rowStart.length - 1))
})
