import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter } from './line-splitter.ts'

function split(splitter: LineSplitter, pieces: readonly string[]): string[] {
  return pieces.flatMap(piece => [...splitter.lines(Buffer.from(piece))].map(String))
}

test('lines come out whole, however they came in, and those that are too long do not', () => {
  const line = fc.string({ unit: fc.constantFrom('a', 'b', '{'), maxLength: 12 })
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(20)), (lines, cuts) => {
      const splitter = new LineSplitter(8)
      const text = lines.map(each => `${each}\n`).join('')
      const pieces: string[] = []
      let at = 0
      for (const cut of cuts) {
        pieces.push(text.slice(at, at + cut))
        at += cut
      }
      assert.deepEqual(
        split(splitter, [...pieces, text.slice(at)]),
        lines.filter(each => each !== '' && each.length <= 8),
      )
      assert.equal(splitter.tooLong, lines.filter(each => each.length > 8).length)
    }),
  )
})

test('a line of exactly the bound is one, and what has no end yet is none', () => {
  const splitter = new LineSplitter(4)
  assert.deepEqual(split(splitter, ['abcd', '\nab']), ['abcd'])
  assert.deepEqual(split(splitter, ['cde', 'f', '\ngh\n']), ['gh'])
  assert.equal(splitter.tooLong, 1)
})
