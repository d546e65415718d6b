import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LogRing } from './log-ring.ts'

const line = (n: number, text = '') => `${JSON.stringify({ n, text })}\n`

interface Parsed {
  readonly n?: number
  readonly text?: string
  readonly omitted?: number
  readonly begins?: string
  readonly bytes?: number
}

function parsed(ring: LogRing): Parsed[] {
  const text = ring.text()
  assert.ok(text === '' || text.endsWith('\n'))
  return text
    .split('\n')
    .slice(0, -1)
    .map(each => JSON.parse(each))
}

test('an empty ring is an empty text', () => {
  assert.equal(new LogRing().text(), '')
})

test('the first lines stay, then it says how many are missing, then come the latest', () => {
  const ring = new LogRing({ bytes: 4096, first: 3 })
  for (let n = 0; n < 1000; n++) ring.add(line(n, 'é'.repeat(n % 50)))
  const lines = parsed(ring)
  assert.deepEqual(
    lines.slice(0, 3).map(({ n }) => n),
    [0, 1, 2],
  )
  const { omitted } = lines[3]!
  const latest = lines.slice(4).map(({ n }) => n!)
  assert.ok(latest.length > 10, `${latest.length}`)
  assert.deepEqual(
    latest,
    Array.from(latest, (_, i) => 1000 - latest.length + i),
  )
  assert.equal(omitted, 1000 - 3 - latest.length)
})

test('whatever is added, it is whole lines in their order, within the bytes, and nothing is uncounted', () => {
  const texts = fc.array(fc.string({ unit: 'binary', maxLength: 120 }), { maxLength: 200 })
  fc.assert(
    fc.property(texts, fc.integer({ min: 0, max: 8 }), (all, first) => {
      const ring = new LogRing({ bytes: 2048, first })
      for (const [n, text] of all.entries()) ring.add(line(n, text))
      const lines = parsed(ring)
      const leftOut = lines.find(each => each.omitted !== undefined)?.omitted ?? 0
      const kept = lines.filter(each => each.omitted === undefined)
      assert.equal(kept.length + leftOut, all.length)
      assert.ok(Buffer.byteLength(ring.text()) <= 2048 + 128)
      const numbers = kept.filter(each => each.n !== undefined).map(({ n }) => n!)
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b),
      )
      for (const { n, text } of kept) if (n !== undefined) assert.equal(text, all[n])
      if (all.length > 0 && kept.at(-1)!.n !== undefined) assert.equal(kept.at(-1)!.n, all.length - 1)
    }),
  )
})

test('a line that is too long leaves its beginning and its size', () => {
  const ring = new LogRing({ bytes: 8192, first: 0 })
  ring.add(line(0))
  ring.add(line(1, '\x01'.repeat(100_000)))
  ring.add(line(2))
  const [before, long, after] = parsed(ring)
  assert.deepEqual([before!.n, after!.n], [0, 2])
  assert.equal(long!.bytes, Buffer.byteLength(line(1, '\x01'.repeat(100_000))))
  assert.match(long!.begins!, /^\{"n":1,"text":"\\u0001/)
})

test('its memory does not grow', () => {
  const ring = new LogRing()
  const text = 'x'.repeat(180)
  for (let n = 0; n < 20_000; n++) ring.add(line(n, text))
  assert.ok(ring.text().length <= 256 * 1024 + 128)
})
