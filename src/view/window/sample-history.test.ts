import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { SampleHistory } from './sample-history.ts'

const runs = soak ? 2000 : 100

type Step =
  | { readonly kind: 'begin'; readonly afterMs: number }
  | { readonly kind: 'set'; readonly series: number; readonly value: number }
  | { readonly kind: 'replace'; readonly series: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin'), afterMs: fc.nat(2500) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('begin'), afterMs: fc.nat(60_000) }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('set'), series: fc.nat(19), value: fc.integer() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace'), series: fc.nat(19) }) },
)

test('a history tells what was set in the last rows, and nothing else', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 120 }), (rows, steps) => {
      const history = new SampleHistory({ rows, stepMs: 1000, maxBytes: 1 << 20, wide: true })
      const columns = Array.from({ length: 20 }, () => history.take()!)
      const plain = columns.map(() => new Map<number, number>())
      let nowMs = 0
      let newest = -1
      let first = -1
      for (const each of steps) {
        if (each.kind === 'begin') {
          nowMs += each.afterMs
          newest = Math.round(nowMs / 1000)
          if (first < 0) first = newest
          history.begin(nowMs)
        } else if (each.kind === 'replace') {
          history.release(columns[each.series]!)
          columns[each.series] = history.take()!
          plain[each.series] = new Map()
        } else if (newest >= 0) {
          history.set(columns[each.series]!, each.value)
          plain[each.series]!.set(newest, each.value)
        }
        assert.equal(history.newest, newest)
        const oldest = Math.max(first, newest - rows + 1)
        assert.equal(history.length, newest < 0 ? 0 : newest - oldest + 1)
        for (const [i, column] of columns.entries())
          for (let row = Math.max(0, newest - rows - 1); row <= newest + 1; row++) {
            const want = row >= oldest && row <= newest ? plain[i]!.get(row) : undefined
            assert.equal(history.at(column, row), want ?? Number.NaN)
          }
      }
    }),
    { numRuns: runs },
  )
})

test('a history takes no more memory than it may, and says how much', () => {
  for (const maxBytes of [0, 3000, 3136, 10_000, 100_000]) {
    const history = new SampleHistory({ rows: 90, stepMs: 1000, maxBytes })
    let taken = 0
    while (history.take() !== undefined) taken++
    assert.ok(history.bytes <= maxBytes)
    assert.equal(taken, Math.floor(maxBytes / (8 * 90 * 4 + 256)) * 8)
    assert.equal(history.take(), undefined)
    if (taken === 0) continue
    history.release(0)
    assert.equal(history.take(), 0, 'a column that was given back is given again')
  }
})
