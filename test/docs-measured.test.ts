// reads: the tree
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { recorded } from '../tools/benching/record.ts'
import type { Results } from '../tools/benching/results.ts'
import { treeFiles } from '../tools/git.ts'
import {
  fillMarks,
  type Measured,
  measuredPage,
  measuredPages,
  readMeasured,
  withoutMarks,
} from '../tools/measured-pages.ts'

test('each measured figure of a page is that of bench/measured.json', () => {
  for (const page of measuredPages)
    assert.equal(readFileSync(page, 'utf8'), measuredPage(page), `${page} is stale: bash tools/generate`)
  const others = treeFiles('.', '*.md').filter(page =>
    /<!--=\S+[^`]*?<!--\/-->/.test(readFileSync(page, 'utf8')),
  )
  assert.deepEqual(others, [...measuredPages].sort(), 'pages with marks are in the list')
})

/** Bounds and aims that pages tell beside measured figures, and what was not measured by a script of bench/. */
const stated = new Set([
  ...['40 %', '160 to 512 MiB', '5 %', '512 MiB', '256 MB', '97 %'],
  // Scatter between steps of the table of growth.
  ...['3 %', '5 MiB'],
  // Of the runtime's file, and of eBPF maps.
  ...['50 to 75 MiB', '20 to 40 MiB'],
])

test('a page of figures has none outside of its marks', () => {
  const figure = /\d[\d.,]*(?: to \d[\d.,]*)? ?(?:%|µs|ms|[KMG]i?B|CPU-seconds)(?![\w])/g
  for (const page of ['README.md', 'docs/compare.md', 'docs/footprint.md']) {
    const found = withoutMarks(readFileSync(page, 'utf8')).match(figure) ?? []
    assert.deepEqual(
      found.filter(text => !stated.has(text)),
      [],
      page,
    )
  }
  assert.deepEqual('takes 76 MB, 3 µs, 1.3 to 2.0 CPU-seconds'.match(figure), [
    '76 MB',
    '3 µs',
    '1.3 to 2.0 CPU-seconds',
  ])
})

const some: Measured = {
  a: { on: '2026-01-02', machine: '2 CPUs', note: '', figures: { 'a.x': 1.25, 'a.y': 10, 'a.z': 10.04 } },
}

test('a mark begins no line but that of a table: there Markdown would take the line as it is', () => {
  for (const page of measuredPages) {
    const found = readFileSync(page, 'utf8').match(/^<!--=(?!table ).*$/gm) ?? []
    assert.deepEqual(found, [], page)
  }
})

test('marks are filled by what was measured, and only by that', () => {
  const check = (asked: string, want: string) =>
    assert.equal(fillMarks(`| <!--=${asked}-->999<!--/--> MB`, some), `| <!--=${asked}-->${want}<!--/--> MB`)
  check('a.x .2', '1.25')
  check('a.y .0', '10')
  check('a.y a.x .1', '1.3 to 10.0')
  check('a.y a.z .1', '10.0')
  check('a.* .1', '1.3 to 10.0')
  check('when a', '2026-01-02, 2 CPUs')
  const refuse = (asked: string, why: RegExp) =>
    assert.throws(() => fillMarks(`<!--=${asked}-->1<!--/-->`, some), why)
  refuse('a.x', /write the decimals/)
  refuse('a.missing .0', /has no figure a\.missing/)
  refuse('a.*.x .0', /has no figure/)
  refuse('b.x .0', /has no script b/)
  refuse('when constructor', /has no script constructor/)
  refuse('table nothing', /no such table: nothing/)
})

test('every figure that was recorded is a number under the name of its script', () => {
  for (const [name, { on, machine, figures }] of Object.entries(readMeasured())) {
    assert.match(on, /^20\d\d-\d\d(-\d\d)?$/, name)
    assert.notEqual(machine, '', name)
    for (const [figure, value] of Object.entries(figures))
      assert.ok(figure.startsWith(`${name}.`) && Number.isFinite(value), `${figure}: ${value}`)
  }
})

test('a run replaces the figures of its scripts that passed, and no others', () => {
  const figure = { name: 'a.x', unit: 'ms', better: 'less', samples: [2.34567], median: 2.34567 } as const
  const script = { reason: '', wall_ms: 1, load: [], left: [], figures: [figure] }
  const results: Results = {
    commit: 'abcdef0123',
    changed: true,
    node: 'v24',
    kernel: '6.18.1',
    cpu: { model: 'Some', count: 2 },
    began: '2026-11-26T12:00:00.000Z',
    wall_ms: 1,
    scripts: [
      { ...script, name: 'a', result: 'passed' },
      { ...script, name: 'b', result: 'failed' },
    ],
    budgets: [],
  }
  assert.throws(() => recorded(some, results), /cannot record a: the run has no a\.y: run the whole script/)
  const before = { a: { ...some.a!, figures: { 'a.x': 1 } }, b: some.a!, c: some.a! }
  assert.deepEqual(recorded(before, results), {
    ...before,
    a: {
      on: '2026-11-26',
      machine: '2 CPUs (Some), Linux 6.18.1',
      note: 'commit abcdef0 with changes',
      figures: { 'a.x': 2.346 },
    },
  })
})
