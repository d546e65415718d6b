import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { cutText } from './cut-text.ts'

const numRuns = soak ? 20_000 : 1000

test('a text is cut between two characters', () => {
  const check = (text: string, limit: number, want: string) => assert.equal(cutText(text, limit), want)
  check('', 0, '')
  check('abc', 3, 'abc')
  check('abcd', 3, 'abc')
  check('abcd', 0, '')
  check('aü', 2, 'a')
  check('aü', 3, 'aü')
  check('a€', 3, 'a')
  check('a€', 4, 'a€')
  check('a😀', 4, 'a')
  check('a😀', 5, 'a😀')
  check('😀😀', 7, '😀')
})

test('a lone surrogate takes the three bytes of what stands for it', () => {
  const check = (text: string, limit: number, want: string) => assert.equal(cutText(text, limit), want)
  check('\ud83d', 2, '')
  check('\ud83d', 3, '\ud83d')
  check('\ud83dx', 3, '\ud83d')
  check('\ude00\ud83d', 3, '\ude00')
  check('\ud83d\ud83d\ude00', 6, '\ud83d')
})

test('what is left is a beginning that fits, and one character more would not', () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.constantFrom('\ud83d', '\ude00'),
    ),
  })
  fc.assert(
    fc.property(text, fc.nat(40), (whole, limit) => {
      const cut = cutText(whole, limit)
      assert.ok(whole.startsWith(cut))
      assert.ok(Buffer.byteLength(cut) <= limit)
      const next = String.fromCodePoint(whole.codePointAt(cut.length) ?? 0)
      if (cut !== whole) assert.ok(Buffer.byteLength(cut + next) > limit)
    }),
    { numRuns },
  )
})
