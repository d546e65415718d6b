import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { callsOf, type FlameColumns, type FlameTree, flameTree, nodeOfPath } from './flame-tree.ts'
import { folded } from './folded.ts'
import { matching, topFunctions } from './functions.ts'

const runs = soak ? 2000 : 100

/** Stacks, the outermost function first, as the document has them: largest siblings first. */
export function columnsOf(stacks: readonly (readonly [stack: string, self: number, base?: number])[]) {
  const names: string[] = []
  const files = ['', '/x.so']
  const columns = { parent: [-1], name: [0], file: [0], type: [0], self: [0], sum: [0], base: [0] }
  const nameOf = (name: string) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1)
  nameOf('all')
  const places = new Map([['', 0]])
  for (const [stack, self, base = 0] of stacks) {
    let at = 0
    let path = ''
    columns.sum[0]! += self
    columns.base[0]! += base
    for (const name of stack.split(';')) {
      path += `;${name}`
      let next = places.get(path)
      if (next === undefined) {
        next = columns.parent.push(at) - 1
        columns.name.push(nameOf(name))
        for (const each of [columns.self, columns.sum, columns.base, columns.type]) each.push(0)
        columns.file.push(1)
        places.set(path, next)
      }
      at = next
      columns.sum[at]! += self
      columns.base[at]! += base
    }
    columns.self[at]! += self
  }
  const isCompared = stacks.some(([, , base]) => base !== undefined)
  return {
    names,
    files,
    types: [''],
    ...columns,
    base: isCompared ? columns.base : [],
  } satisfies FlameColumns
}

const stacks = fc.array(
  fc.tuple(
    fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 6 }).map(all => all.join(';')),
    fc.integer({ min: 1, max: 1000 }),
    fc.integer({ min: 0, max: 1000 }),
  ),
  { minLength: 1, maxLength: 40 },
)

const nameAt = (tree: FlameTree, node: number) => tree.names[tree.name[node]!]!

function stackOf(tree: FlameTree, node: number): string {
  const names: string[] = []
  for (let at = node; at > 0; at = tree.parent[at]!) names.unshift(nameAt(tree, at))
  return names.join(';')
}

test('a tree is in pre-order, its rows sorted, its bars within those of their parents', () => {
  fc.assert(
    fc.property(stacks, all => {
      const tree = flameTree(columnsOf(all))
      for (let node = 1; node < tree.count; node++) {
        const above = tree.parent[node]!
        assert.ok(above < node && node < tree.end[above]! && tree.end[node]! <= tree.end[above]!)
        assert.equal(tree.depth[node], tree.depth[above]! + 1)
        assert.ok(tree.left[node]! >= tree.left[above]!)
        assert.ok(tree.left[node]! + tree.sum[node]! <= tree.left[above]! + tree.sum[above]!)
      }
      for (let row = 0; row + 1 < tree.rowStart.length; row++)
        for (let at = tree.rowStart[row]! + 1; at < tree.rowStart[row + 1]!; at++) {
          const [before, node] = [tree.rowNodes[at - 1]!, tree.rowNodes[at]!]
          assert.ok(tree.left[before]! + tree.sum[before]! <= tree.left[node]!)
        }
    }),
    { numRuns: runs },
  )
})

test('folded text has every stack with its value', () => {
  fc.assert(
    fc.property(stacks, all => {
      const wanted = new Map<string, number>()
      for (const [stack, self] of all) wanted.set(`all;${stack}`, (wanted.get(`all;${stack}`) ?? 0) + self)
      const lines = folded(flameTree(columnsOf(all))).map(line => line.trimEnd().split(' '))
      assert.deepEqual(
        new Map(lines.map(([stack, value]) => [stack!, Number(value)])),
        new Map([...wanted].filter(([, value]) => value > 0)),
      )
    }),
    { numRuns: runs },
  )
})

test('folded text of a subtree begins with it, and signs of the form in names do no harm', () => {
  const tree = flameTree(columnsOf([['a;b', 1]]))
  assert.deepEqual(folded(tree, 1), ['a;b 1\n'])
  const odd = { ...tree, names: ['all', 'x;y', 'new\nline'] }
  assert.deepEqual(folded(odd), ['all;x:y;new line 1\n'])
})

test('a node is found again in the next document, whatever its place there', () => {
  const one = flameTree(
    columnsOf([
      ['a;b;c', 5],
      ['a;c', 3],
      ['b', 9],
    ]),
  )
  const next = flameTree(
    columnsOf([
      ['b', 1],
      ['d', 2],
      ['a;c', 3],
      ['a;b;c', 5],
    ]),
  )
  for (let node = 0; node < one.count; node++)
    assert.equal(stackOf(next, nodeOfPath(next, one.path[node]!)), stackOf(one, node))
  assert.equal(nodeOfPath(next, 1), -1)
})

test('a function’s self and total are those of all its places, a call of itself counted once', () => {
  fc.assert(
    fc.property(stacks, all => {
      const tree = flameTree(columnsOf(all))
      const { rows } = topFunctions(tree, 0)
      for (const name of ['a', 'b', 'c', 'd']) {
        const having = all.filter(([stack]) => stack.split(';').includes(name))
        const row = rows.find(each => each.name === name)
        const sum = (of: typeof all, i: 1 | 2) => of.reduce((total, each) => total + each[i], 0)
        assert.equal(row?.total ?? 0, sum(having, 1))
        assert.equal(row?.base ?? 0, sum(having, 2))
        assert.equal(
          row?.self ?? 0,
          sum(
            all.filter(([stack]) => stack.endsWith(name)),
            1,
          ),
        )
        assert.equal(matching(tree, name.toUpperCase(), 0)?.sum ?? 0, wantedMatch(all, name))
      }
    }),
    { numRuns: runs },
  )
})

/** The root, `all`, has an a, too. */
function wantedMatch(all: readonly (readonly [string, number, number])[], name: string): number {
  return all
    .filter(([stack]) => name === 'a' || stack.includes(name))
    .reduce((total, [, self]) => total + self, 0)
}

test('a search counts what matches below the zoom, each stack once, and finds files', () => {
  const tree = flameTree(
    columnsOf([
      ['a;b;b', 5],
      ['a;c', 3],
      ['d', 9],
    ]),
  )
  const a = nodeOfPath(tree, tree.path[1]!)
  assert.equal(stackOf(tree, a), 'a')
  assert.deepEqual([matching(tree, 'b', a)!.sum, matching(tree, 'b', a)!.functions], [5, 1])
  assert.equal(matching(tree, 'd', a)!.sum, 0)
  assert.equal(matching(tree, ' X.SO ', 0)!.sum, 17)
  assert.equal(matching(tree, '  ', 0), undefined)
  assert.deepEqual([matching(tree, '"A"', 0)!.sum, matching(tree, 'a', 0)!.sum], [8, 17])
})

test('the calls of a function are those of all its places, put upon each other', () => {
  fc.assert(
    fc.property(stacks, all => {
      const tree = flameTree(columnsOf(all))
      const calls = callsOf(tree, 'b')
      const having = all.filter(([stack]) => stack.split(';').includes('b'))
      if (having.length === 0) {
        assert.equal(calls, undefined)
        return
      }
      const wanted = new Map<string, number>()
      for (const [stack, self] of having) {
        const names = stack.split(';')
        const below = names.slice(names.indexOf('b')).join(';')
        wanted.set(below, (wanted.get(below) ?? 0) + self)
      }
      const lines = folded(calls!).map(line => line.trimEnd().split(' '))
      assert.deepEqual(new Map(lines.map(([stack, value]) => [stack!, Number(value)])), wanted)
      assert.equal(
        calls!.base![0],
        having.reduce((sum, each) => sum + each[2], 0),
      )
    }),
    { numRuns: runs },
  )
})

test('an empty document is a tree of nothing', () => {
  const columns = { names: [], files: [], types: [], parent: [], name: [], file: [], type: [] }
  const tree = flameTree({ ...columns, self: [], sum: [], base: [] })
  assert.equal(tree.count, 0)
  assert.deepEqual(topFunctions(tree, 0), { rows: [], count: 0 })
  assert.deepEqual(folded(tree), [])
  assert.equal(matching(tree, 'a', 0)!.sum, 0)
  assert.equal(callsOf(tree, 'a'), undefined)
})
