import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flameTree } from './flame-tree.ts'
import { chosenIntervals, intervalsBefore, rangeOf, spanned, stepped } from './intervals.ts'
import { kindSeries, kindTitle, packageOf } from './packages.ts'
import { changeSteps, shadesByChange, shadesByKind, shadesByPackage } from './shades.ts'

test('the package of a function is told by its name or its file', () => {
  const check = (name: string, file: string, type: string, want: string) =>
    assert.equal(packageOf(name, file, type), want)
  check('net/http.(*conn).serve', '/usr/lib/go/server.go', 'go', 'net/http')
  check('github.com/a/b.(*T[github.com/c/d.E]).Do', '', 'go', 'github.com/a/b')
  check('main.main', '', 'go', 'main')
  check('renderPage', '/app/node_modules/@scope/pkg/lib/a.js', 'v8js', '@scope/pkg')
  check('x', '/app/node_modules/a/node_modules/b/i.js', 'v8js', 'b')
  check('emit', 'node:events', 'v8js', 'node')
  check('add', '/app/cart/add.js', 'v8js', 'cart')
  check('get', '/usr/lib/python3/site-packages/requests/api.py', 'cpython', 'requests')
  check('com.shop.Cart$Line.add', '', 'jvm', 'com.shop')
  check('main', 'App.java', 'jvm', 'main')
  check('tokio::runtime::park', '', 'rust', 'tokio')
  check('<core::iter::Map as Iterator>::next', '', 'rust', 'core')
  check('SSL_read', '/usr/lib/x86_64-linux-gnu/libssl.so.3', 'native', 'libssl.so.3')
  check('tcp_sendmsg', '', 'kernel', 'kernel')
  check('f', 'x.c', 'native', 'x.c')
  check('', '', '', '')
  check('noDotHere', '', 'go', '')
})

test('a kind that nobody knows yet has a name and a colour', () => {
  assert.deepEqual([kindTitle('v8js'), kindTitle('wasm'), kindTitle('')], ['JavaScript', 'wasm', ''])
  assert.deepEqual([kindSeries('kernel'), kindSeries('wasm'), kindSeries('')], [2, 8, 0])
})

const tree = flameTree({
  names: ['all', 'f', 'g'],
  files: ['', '/lib/a.so', '/lib/b.so'],
  types: ['', 'native', 'kernel'],
  parent: [-1, 0, 0, 1],
  name: [0, 1, 2, 2],
  file: [0, 1, 2, 2],
  type: [0, 1, 2, 2],
  self: [0, 60, 10, 30],
  sum: [100, 90, 10, 30],
  base: [100, 45, 55, 0],
})

test('shades by kind and package come with what each has by itself', () => {
  assert.deepEqual(shadesByKind(tree).legend, [
    { title: 'native', shade: 1, value: 60 },
    { title: 'kernel', shade: 2, value: 40 },
  ])
  const { shade, legend } = shadesByPackage(tree)
  assert.deepEqual(
    legend.map(({ title, value }) => [title, value]),
    [
      ['a.so', 60],
      ['kernel', 40],
    ],
  )
  assert.equal(shade[0], 0)
  // In pre-order g, which f calls, stands before the other.
  assert.ok(shade[2] === shade[3] && shade[2]! >= 1 && shade[2]! <= 8)
})

test('shades by change tell more from less, and how much of it', () => {
  const { shade } = shadesByChange(tree)
  assert.deepEqual([...shade], [0, 3, changeSteps, changeSteps + 4])
})

const intervals = [0, 10, 20, 30, 40].map(at => ({ from_ms: at, to_ms: at + 10, value: at }))

test('the intervals of a time are those whose middle is in it, else the newest', () => {
  const check = (from: number, to: number, span: number, first: number, last: number) =>
    assert.deepEqual(chosenIntervals(intervals, from, to, span), { first, last })
  check(10, 30, 100, 1, 2)
  check(0, 0, 20, 3, 4)
  check(0, 0, 1e9, 0, 4)
  check(0, 0, 1, 4, 4)
  // They have left the window.
  check(-500, -400, 20, 3, 4)
  check(11, 19, 20, 1, 1)
  assert.equal(chosenIntervals([], 10, 30, 20), undefined)
  assert.deepEqual(rangeOf(intervals, { first: 1, last: 2 }), { fromMs: 10, toMs: 30 })
})

test('what it is compared with are as many intervals before, as far as there are any', () => {
  assert.deepEqual(intervalsBefore({ first: 3, last: 4 }), { first: 1, last: 2 })
  assert.deepEqual(intervalsBefore({ first: 1, last: 3 }), { first: 0, last: 0 })
  assert.equal(intervalsBefore({ first: 0, last: 3 }), undefined)
})

test('arrow keys choose the interval beside the chosen ones, or make them more, within the window', () => {
  assert.deepEqual(stepped({ first: 2, last: 3 }, -1, false, 5), { first: 1, last: 1 })
  assert.deepEqual(stepped({ first: 2, last: 3 }, 1, false, 5), { first: 4, last: 4 })
  assert.deepEqual(stepped({ first: 0, last: 0 }, -6, false, 5), { first: 0, last: 0 })
  assert.deepEqual(stepped({ first: 2, last: 3 }, -1, true, 5), { first: 1, last: 3 })
  assert.deepEqual(stepped({ first: 2, last: 3 }, 6, true, 5), { first: 2, last: 4 })
  assert.deepEqual(spanned(3, 1), { first: 1, last: 3 })
})
