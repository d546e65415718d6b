import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ownText } from './own-text.ts'

test('a text is cut by bytes, never within a character', () => {
  const text = 'aäb€c😀d'
  for (let most = 0; most <= 20; most++) {
    const cut = ownText(text, most)
    assert.ok(text.startsWith(cut), `${most}: ${cut}`)
    assert.ok(Buffer.byteLength(cut) <= most)
    const next = text.slice(cut.length)
    const character = next === '' ? '' : String.fromCodePoint(next.codePointAt(0)!)
    if (character !== '') assert.ok(Buffer.byteLength(cut + character) > most, `${most}: ${cut} is too short`)
  }
  assert.equal(ownText('x'.repeat(10_000), 256).length, 256)
})

test('a part does not keep the text that it was part of', () => {
  const collect = collector()
  const kept: string[] = []
  collect()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < 64; i++) kept.push(ownText(`${i} ${'x'.repeat(1_000_000)}`.split(' ')[1]!, 100))
  collect()
  assert.ok(process.memoryUsage().heapUsed - before < 16e6)
  assert.equal(kept.length, 64)
})

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
