import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { below, foldedOf, parseFolded, plain, plainName, shareOf } from './folded.ts'
import { describeOverlap, noiseFloor, overlap } from './overlap.ts'

test('the scores of two profiles are what their shares have in common', () => {
  const one = parseFolded('main;a;spin 6\nmain;b;spin 4\n')
  const other = parseFolded('main;a;spin 30\nmain;b;spin 10\nmain;b 10\n')
  const { stacks, self, inclusive, counts } = overlap(one, other)
  assert.ok(Math.abs(stacks - 0.8) < 1e-9)
  assert.ok(Math.abs(self - 0.8) < 1e-9)
  // main 1 and 1, a 0.6 and 0.6, b 0.4 and 0.4, spin 1 and 0.8
  assert.ok(Math.abs(inclusive - 2.8 / 3) < 1e-9)
  assert.deepEqual(counts, [10, 50])
  assert.match(describeOverlap(one, other), /^stacks 80\.0 %, .*apart: spin 100\.0 and 80\.0/)
})

test('overlaps lie between 0 and 1, are 1 with oneself, and do not depend on the order', () => {
  const folded = fc
    .array(
      fc.tuple(fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }), fc.integer({ min: 1, max: 99 })),
      {
        minLength: 1,
      },
    )
    .map(stacks => foldedOf(stacks.map(([frames, count]) => [frames.join(';'), count] as const)))
  const near = (a: number, b: number) => Math.abs(a - b) < 1e-9
  fc.assert(
    fc.property(folded, folded, (one, other) => {
      const there = overlap(one, other)
      const back = overlap(other, one)
      const same = overlap(one, one)
      for (const score of ['stacks', 'self', 'inclusive'] as const) {
        assert.ok(there[score] > -1e-9 && there[score] < 1 + 1e-9)
        assert.ok(near(there[score], back[score]))
        assert.ok(near(same[score], 1))
      }
    }),
  )
})

test('names that tools write differently become one', () => {
  const check = (name: string, want: string) => assert.equal(plainName(name), want)
  check('compare.constprop.0', 'compare')
  check('read_all.part.12.cold', 'read_all')
  check('parse.isra.0.cold.3', 'parse')
  check('main.cold', 'main')
  check('qsort_r@@GLIBC_2.8', 'qsort_r')
  check('__GI___qsort_r', 'qsort_r')
  check('_start', 'start')
  check('core::ptr::drop', 'core::ptr::drop')
  check('_', '_')
})

test('frames above a root are left out, and stacks without it stay apart', () => {
  const folded = plain(parseFolded('_start;main;work 3\nclone3;work 1\n'))
  assert.deepEqual(
    [...below(folded, 'main')],
    [
      ['main;work', 3],
      ['[no root];clone3;work', 1],
    ],
  )
  assert.equal(
    shareOf(folded, frames => frames.includes('main')),
    0.75,
  )
})

test('two short profiles of one program need not agree as far as two long ones', () => {
  const program = (samples: number) =>
    parseFolded(`a ${samples * 0.6}\nb ${samples * 0.3}\nc ${samples * 0.1}\n`)
  const short = noiseFloor(program(100), 100)
  const long = noiseFloor(program(10_000), 10_000)
  assert.ok(short > 0.6 && short < 0.95, `${short}`)
  assert.ok(long > 0.96 && long < 1, `${long}`)
})
