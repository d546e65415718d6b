import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Frame, FrameType, Sample } from '../../foundation/model/profile.ts'
import { type FlameTree, FlameTreeBuilder, frameTypes, otherName } from './flame-tree.ts'

const none = new Attributes()

function frame(name: string, type?: FrameType): Frame {
  return { name, file: `/usr/bin/${name}`, line: 0, ...(type && { type }) }
}

/** A sample of functions, outermost first. */
function sample(value: number, ...names: string[]): Sample {
  return { frames: names.reverse().map(name => frame(name)), value, attributes: none }
}

function treeOf(samples: readonly Sample[], most?: number): FlameTree {
  const builder = new FlameTreeBuilder('root')
  const group = builder.group('shop', '/usr/bin/shop')
  for (const each of samples) builder.add(group, each)
  return builder.finish(most)
}

/** Each node as `root/…/name self total`. */
function lines(tree: FlameTree): string[] {
  const paths: string[] = []
  for (let node = 0; node < tree.parent.length; node++) {
    const name = tree.strings[tree.name[node]!]!
    paths.push(node === 0 ? name : `${paths[tree.parent[node]!]}/${name}`)
  }
  return paths.map((path, node) => `${path} ${tree.self[node]} ${tree.total[node]}`)
}

/** What holds for every tree. */
function check(tree: FlameTree, most: number, whole: number): void {
  const { parent, self, total } = tree
  assert.ok(parent.length <= most, `${parent.length} nodes of ${most}`)
  assert.deepEqual([parent[0], total[0]], [0, whole])
  const below = new Float64Array(parent.length)
  for (let node = 1; node < parent.length; node++) {
    assert.ok(parent[node]! < node)
    below[parent[node]!]! += total[node]!
    assert.ok(tree.name[node]! < tree.strings.length && tree.file[node]! < tree.strings.length)
  }
  for (let node = 0; node < parent.length; node++) assert.equal(self[node]! + below[node]!, total[node])
}

test('stacks become one tree, root first, larger siblings before smaller ones', () => {
  const tree = treeOf([
    sample(10, 'main', 'parse'),
    sample(30, 'main', 'work', 'sum'),
    sample(5, 'main', 'work'),
    sample(10, 'main', 'draw'),
    sample(2),
  ])
  assert.deepEqual(lines(tree), [
    'root 0 57',
    'root/shop 2 57',
    'root/shop/main 0 55',
    'root/shop/main/work 5 35',
    'root/shop/main/work/sum 30 30',
    'root/shop/main/draw 10 10',
    'root/shop/main/parse 10 10',
  ])
  check(tree, 7, 57)
})

test('functions of one name are apart where their file or type differs, and equal frames need not be one object', () => {
  const of = (file: string, type: FrameType): Sample => ({
    frames: [{ name: 'read', file, line: 7, type }],
    value: 1,
    attributes: none,
  })
  const tree = treeOf([of('/a', 'native'), of('/a', 'native'), of('/b', 'native'), of('/a', 'kernel')])
  assert.deepEqual([...tree.total], [4, 4, 2, 1, 1])
  assert.deepEqual([...tree.type].map(type => frameTypes[type]).toSorted(), [
    '',
    '',
    'kernel',
    'native',
    'native',
  ])
})

test('what has no name is told apart from the rest, and names become one safe line', () => {
  const named = sample(3, 'main')
  const unnamed = sample(1, 'main', '[stripped]')
  const tree = treeOf([named, unnamed, sample(1, 'a\nb\u001b[31m\u202ec\ud800'), sample(1, '')])
  assert.equal(tree.unnamed, 1)
  assert.ok(tree.strings.includes('a\ufffdb\ufffd[31m\ufffdc\ufffd'))
  assert.ok(tree.strings.includes('[unnamed]'))
  assert.ok(treeOf([sample(1, 'x'.repeat(100_000))]).strings.every(text => text.length <= 512))
})

test('values that are none are passed over', () => {
  const tree = treeOf(
    [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 0.4, 2.6].map(value => sample(value, 'main')),
  )
  assert.deepEqual(lines(tree), ['root 0 3', 'root/shop 0 3', 'root/shop/main 3 3'])
})

test('beyond the bound the smallest are merged below the function that called them', () => {
  const tree = treeOf(
    [
      ...['a', 'b', 'c', 'd'].map((name, i) => sample(10 - i, 'main', name, 'leaf')),
      sample(50, 'main', 'large'),
      sample(20, 'start', 'thread'),
    ],
    8,
  )
  check(tree, 8, 104)
  assert.deepEqual(lines(tree), [
    'root 0 104',
    'root/shop 0 104',
    'root/shop/main 0 84',
    'root/shop/main/large 50 50',
    `root/shop/main/${otherName} 34 34`,
    'root/shop/start 0 20',
    'root/shop/start/thread 20 20',
  ])
})

test('whatever the samples are, a tree adds up and keeps its bound', () => {
  const stacks = fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.constantFrom('a', 'b', 'c', otherName), { maxLength: 6 }),
    ),
    { maxLength: 200 },
  )
  fc.assert(
    fc.property(stacks, fc.integer({ min: 3, max: 60 }), (drawn, most) => {
      const whole = drawn.reduce((sum, [value]) => sum + value, 0)
      check(
        treeOf(
          drawn.map(([value, names]) => sample(value, ...names)),
          most,
        ),
        most,
        whole,
      )
    }),
    { numRuns: soak ? 2000 : 150 },
  )
})

test('deep stacks, very many stacks and very many names keep memory and totals in bounds', () => {
  const deep = sample(7, ...Array.from({ length: 1000 }, (_, i) => `f${i}`))
  const tree = treeOf([deep])
  assert.equal(tree.parent.length, 1002)
  check(tree, 1002, 7)
  const deeper = treeOf([sample(7, ...Array.from({ length: 100_000 }, () => 'f'))])
  assert.ok(deeper.parent.length < 1030)
  assert.equal(deeper.strings[deeper.name.at(-1)!], otherName)

  const samples = Array.from({ length: 50_000 }, (_, i) =>
    sample(
      1 + (i % 7),
      'main',
      `a${i % 10}`,
      `b${i % 100}`,
      `c${i % 1000}`,
      ...[0, 1, 2].map(n => `d${i}.${n}`),
    ),
  )
  const wide = treeOf(samples)
  const whole = samples.reduce((sum, { value }) => sum + value, 0)
  check(wide, 20_000, whole)
  assert.ok(wide.parent.length > 19_000)
  // What is large is exact, however often the small ones were merged.
  const main = lines(wide).find(line => line.startsWith('root/shop/main '))
  assert.equal(main, `root/shop/main 0 ${whole}`)
})
