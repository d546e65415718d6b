import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choiceOf, columnSum, cornersOf, gridOf, rowOf, shadeOf } from './heatmap.ts'

/** Four columns of 10 s, rows up to 1 ms, 10 ms and above. */
const line = {
  from_ms: 100_000,
  heatmap: {
    step_ms: 10_000,
    columns: 4,
    bounds_ms: [1, 10],
    counts: [1, 2, 0, 4, 0, 5, 0, 9, 3, 0, 0, 1],
    errors: [0, 0, 0, 1, 0, 2, 0, 0, 3, 0, 0, 0],
  },
}

test('the newest columns are shown', () => {
  const grid = gridOf(line, 20)
  assert.equal(grid.columns, 2)
  assert.equal(grid.fromMs, 120_000)
  assert.deepEqual(
    [0, 1, 2].map(row => [grid.count(row, 0), grid.count(row, 1)]),
    [
      [0, 4],
      [0, 9],
      [0, 1],
    ],
  )
  assert.deepEqual([grid.most, grid.spans, grid.errors], [9, 14, 1])
  assert.equal(gridOf(line, 3600).columns, 4)
})

test('a choice of cells has the same corners again, also when time went on', () => {
  const grid = gridOf(line, 40)
  for (let from = 0; from < 4; from++)
    for (let to = from; to < 4; to++)
      for (let low = 0; low < 3; low++)
        for (let high = low; high < 3; high++) {
          const corners = [
            { row: low, column: from },
            { row: high, column: to },
          ] as const
          assert.deepEqual(cornersOf(grid, choiceOf(grid, corners[1], corners[0])), corners)
        }
  const choice = choiceOf(grid, { row: 0, column: 1 }, { row: 2, column: 2 })
  assert.deepEqual(choice, { fromMs: 110_000, toMs: 130_000, minMs: 0, maxMs: 0 })
  const later = gridOf({ ...line, from_ms: 120_000 }, 40)
  assert.deepEqual(cornersOf(later, choice), [
    { row: 0, column: 0 },
    { row: 2, column: 0 },
  ])
  assert.equal(cornersOf(gridOf({ ...line, from_ms: 130_000 }, 40), choice), undefined)
})

test('a duration lies in the row whose bound it does not exceed', () => {
  const grid = gridOf(line, 40)
  assert.deepEqual(
    [0, 1, 1.1, 10, 11, 1e9].map(ms => rowOf(grid, ms)),
    [0, 0, 1, 1, 2, 2],
  )
})

test('one span is seen, and the fullest cell is the darkest', () => {
  assert.equal(shadeOf(0, 9), 0)
  assert.ok(shadeOf(1, 1e6) > 0.1)
  assert.ok(Math.abs(shadeOf(1e6, 1e6) - 1) < 1e-9)
  assert.ok(shadeOf(1, 1) > 0 && shadeOf(1, 1) <= 1)
})

test('a column is told in numbers', () => {
  const grid = gridOf(line, 40)
  assert.deepEqual(columnSum(grid, 0), {
    fromMs: 100_000,
    spans: 4,
    errors: 3,
    medianMs: Number.POSITIVE_INFINITY,
    slowestMs: Number.POSITIVE_INFINITY,
  })
  assert.deepEqual(columnSum(grid, 1), { fromMs: 110_000, spans: 7, errors: 2, medianMs: 10, slowestMs: 10 })
  assert.deepEqual(columnSum(grid, 2), {
    fromMs: 120_000,
    spans: 0,
    errors: 0,
    medianMs: null,
    slowestMs: null,
  })
})
