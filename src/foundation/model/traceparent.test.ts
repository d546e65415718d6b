import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseTraceparent } from './traceparent.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

function parse(text: string): string | undefined {
  const bytes = Buffer.from(`x${text}y`, 'latin1')
  const traceIdOut = Buffer.alloc(16, 0xee)
  const spanIdOut = Buffer.alloc(8, 0xee)
  const flags = parseTraceparent(bytes, 1, bytes.length - 1, traceIdOut, spanIdOut)
  if (flags >= 0) return `${traceIdOut.toString('hex')} ${spanIdOut.toString('hex')} ${flags}`
  assert.equal(flags, -1)
  assert.ok(traceIdOut.every(byte => byte === 0xee) && spanIdOut.every(byte => byte === 0xee))
  return undefined
}

function check(text: string, flags: number | undefined): void {
  assert.equal(parse(text), flags === undefined ? undefined : `${traceId} ${spanId} ${flags}`, text)
}

test('a valid value gives the ids and the flags', () => {
  check(`00-${traceId}-${spanId}-01`, 1)
  check(`00-${traceId}-${spanId}-00`, 0)
  check(`00-${traceId}-${spanId}-03`, 3)
  check(` \t00-${traceId}-${spanId}-01 \t`, 1)
})

test('flags that the level does not define are ignored', () => {
  check(`00-${traceId}-${spanId}-ff`, 3)
  check(`00-${traceId}-${spanId}-fc`, 0)
})

test('a later version is read as far as it is known', () => {
  check(`01-${traceId}-${spanId}-01`, 1)
  check(`cc-${traceId}-${spanId}-01-what-the-future-brings`, 1)
  check(`cc-${traceId}-${spanId}-01-`, 1)
  check(`cc-${traceId}-${spanId}-01.what`, undefined)
  check(`cc-${traceId}-${spanId}-0`, undefined)
})

test('what the specification calls invalid is refused', () => {
  check('', undefined)
  check(`ff-${traceId}-${spanId}-01`, undefined)
  check(`00-${traceId}-${spanId}-01-more`, undefined)
  check(`00-${traceId}-${spanId}-01-`, undefined)
  check(`00-${'0'.repeat(32)}-${spanId}-01`, undefined)
  check(`00-${traceId}-${'0'.repeat(16)}-01`, undefined)
  check(`00-${traceId.toUpperCase()}-${spanId}-01`, undefined)
  check(`00-${traceId}-${spanId.toUpperCase()}-01`, undefined)
  check(`0X-${traceId}-${spanId}-01`, undefined)
  check(`00-${traceId}-${spanId}-0g`, undefined)
  check(`00_${traceId}-${spanId}-01`, undefined)
  check(`00-${traceId}_${spanId}-01`, undefined)
  check(`00-${traceId}-${spanId}_01`, undefined)
  check(`00-${traceId.slice(1)}-${spanId}-01`, undefined)
  check(`00-${traceId.slice(1)}.-${spanId}-01`, undefined)
})

test('every valid value comes back, and no value cut short does', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 25, maxLength: 25 }), random => {
      random[0] = random[0]! | 1
      random[16] = random[16]! | 1
      const hex = Buffer.from(random).toString('hex')
      const text = `00-${hex.slice(0, 32)}-${hex.slice(32, 48)}-${hex.slice(48)}`
      assert.equal(parse(text), `${hex.slice(0, 32)} ${hex.slice(32, 48)} ${random[24]! & 3}`)
      for (let cut = 0; cut < text.length; cut++) assert.equal(parse(text.slice(0, cut)), undefined)
    }),
    { numRuns: 50 },
  )
})

test('no bytes make it throw', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 80 }),
      fc.integer({ min: -5, max: 90 }),
      fc.integer({ min: -5, max: 90 }),
      (bytes, a, b) => {
        parseTraceparent(bytes, a, b, Buffer.alloc(16), Buffer.alloc(8))
      },
    ),
  )
})
