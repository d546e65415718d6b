import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { BodyText } from './body-text.ts'

function isIn(text: string, body: string): boolean {
  const bytes = Buffer.from(`<${body}>`)
  return new BodyText(text).isIn(bytes, 1, bytes.length - 1)
}

test('a text is found without regard to case, in every script', () => {
  const check = (text: string, body: string, want: boolean) =>
    assert.equal(isIn(text, body), want, `${text} in ${body}`)
  check('Error', 'an ERROR came', true)
  check('straße', 'DIE STRAßE', true)
  check('ÄRGER', 'viel ärger', true)
  check('ПРИВЕТ', 'ну, привет', true)
  check('日本', '今日は日本', true)
  check('👋🏽', 'a 👋🏽 b', true)
  check('ω', 'ΑΩ', true)
  check('ﬀ', 'ﬀ', true)
  check('Ⅷ', 'ⅷ', true)
  check('', '', true)
  check('a', '', false)
  check('ab', 'a b', false)
  check('aab', 'aaab', true)
  check('>', 'ends before', false)
})

test('it is found exactly where plain texts would find it', () => {
  const letter = fc.constantFrom('a', 'A', 'b', 'ä', 'Ä', 'я', 'Я', '日', '👋', ' ')
  const text = (maxLength: number) => fc.array(letter, { maxLength }).map(all => all.join(''))
  fc.assert(
    fc.property(text(4), text(30), (wanted, body) => {
      assert.equal(isIn(wanted, body), body.toLowerCase().includes(wanted.toLowerCase()))
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('bytes that are no text end no search', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.string(), (bytes, text) => {
      new BodyText(text).isIn(bytes, 0, bytes.length)
    }),
  )
})

test('what nearly fits everywhere takes no longer', t => {
  const body = Buffer.alloc(1 << 20, 'a')
  const began = performance.now()
  assert.equal(new BodyText(`${'a'.repeat(2000)}b`).isIn(body, 0, body.length), false)
  t.diagnostic(`${(performance.now() - began).toFixed(1)} ms for 1 MiB`)
})
