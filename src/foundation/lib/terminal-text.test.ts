import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fitted, padLeft, padRight, terminalJson, terminalText, widthOf } from './terminal-text.ts'

const anything = fc.string({ unit: 'binary', maxLength: 60 })

test('no text can control a terminal, end its line or turn its direction', () => {
  fc.assert(
    fc.property(
      anything,
      text => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(terminalText(text, true)),
    ),
  )
  fc.assert(fc.property(anything, text => /^[\x20-\x7e]*$/.test(terminalText(text, false))))
  assert.equal(terminalText('a\x1b[2J\u202eb\r\nc\td', true), 'a\ufffd[2J\ufffdb c d')
  assert.equal(terminalText('port 80 → pid 7 · 5 µs… naïve', false), 'port 80 -> pid 7 - 5 us... na?ve')
  assert.ok(terminalText('x'.repeat(100_000), true).length < 5000)
})

test('JSON says the same, and no text in it can control a terminal', () => {
  fc.assert(
    fc.property(anything, text => {
      const json = terminalJson(JSON.stringify({ [text]: text }))
      assert.deepEqual(JSON.parse(json), { [text]: text })
      assert.doesNotMatch(json, /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
    }),
  )
  assert.equal(terminalJson(JSON.stringify('\x9b31m\u202e名')), '"\\u009b31m\\u202e名"')
})

test('text takes as many columns as it is given', () => {
  const columns = fc.integer({ min: 0, max: 40 })
  const check = (of: (text: string, columns: number) => boolean) =>
    fc.assert(fc.property(anything, columns, (text, most) => of(terminalText(text, true), most)))
  check((text, most) => widthOf(fitted(text, most)) <= most)
  check((text, most) => widthOf(padRight(text, most)) === most)
  check((text, most) => widthOf(padLeft(text, most)) === most)
  assert.equal(widthOf('名前'), 4)
  assert.equal(padRight('名前', 3), '名…')
  assert.equal(fitted('checkout', 5), 'chec~')
})
