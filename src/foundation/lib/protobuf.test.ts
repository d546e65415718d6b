import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { fieldKey, PreparedField, Reader, varintSize, WireType, Writer } from './protobuf.ts'

const varint = fieldKey(1, WireType.varint)
const fixed = fieldKey(1, WireType.fixed64)
const bytes = fieldKey(1, WireType.bytes)

function written(write: (out: Writer) => void): Buffer {
  const out = new Writer(1)
  write(out)
  return Buffer.from(out.written())
}

test('integers are encoded as protobufjs encodes them', () => {
  const check = (value: number) =>
    assert.deepEqual(
      written(out => out.int(varint, value)),
      Buffer.from(protobuf.Writer.create().uint32(varint).int64(value).finish()),
      String(value),
    )
  for (let bits = 0; bits < 53; bits++) {
    for (const near of [-1, 0, 1]) {
      check(2 ** bits + near)
      check(-(2 ** bits) + near)
    }
  }
  check(Number.MAX_SAFE_INTEGER)
  check(Number.MIN_SAFE_INTEGER)
  fc.assert(fc.property(fc.maxSafeInteger(), check))
})

test('a number that is none is written as 0 and does not hang', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
    assert.deepEqual(
      written(out => out.int(varint, value)),
      Buffer.from([8, 0]),
    )
})

test('the size of a varint is that of its encoding', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), value => {
      assert.equal(varintSize(value), written(out => out.element(value)).length)
    }),
  )
  for (let bits = 0; bits < 53; bits++)
    for (const value of [2 ** bits - 1, 2 ** bits])
      assert.equal(varintSize(value), written(out => out.element(value)).length, String(value))
})

test('fixed64 holds what a 64-bit integer holds', () => {
  const check = (value: number) =>
    assert.equal(written(out => out.fixed64(fixed, value)).readBigInt64LE(1), BigInt(value))
  for (const value of [0, 1, -1, 2 ** 32, -(2 ** 32), 2 ** 53, -(2 ** 53), 2 ** 62, -(2 ** 63)]) check(value)
  fc.assert(fc.property(fc.maxSafeInteger(), check))
})

test('microseconds become exact nanoseconds', () => {
  const check = (whole: number, nanos: number) =>
    assert.equal(
      written(out => out.microsAsNanos(fixed, whole + nanos / 1000)).readBigUInt64LE(1),
      BigInt(whole) * 1000n + BigInt(nanos),
    )
  // A double holds quarters of a microsecond up to 2^51, the year 2041.
  fc.assert(fc.property(fc.integer({ min: 1, max: 2 ** 51 - 1 }), fc.constantFrom(0, 250, 500, 750), check), {
    numRuns: 20_000,
  })
  // Near the epoch it holds nanoseconds.
  fc.assert(fc.property(fc.integer({ min: 1, max: 2 ** 40 }), fc.nat(999), check), { numRuns: 20_000 })
  check(1_777_777_777_777_777, 750)
  check(18_446_744_073_709_548, 0)
})

test('a time that fixed64 cannot hold is unknown', () => {
  for (const us of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2e16])
    assert.equal(written(out => out.microsAsNanos(fixed, us)).readBigUInt64LE(1), 0n, String(us))
})

test('texts of every length and script are valid UTF-8 with the right length', () => {
  const check = (text: string) => {
    const reader = new Reader(written(out => out.string(bytes, text)))
    assert.equal(reader.next(), true)
    const decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(reader.bytes())
    assert.equal(decoded, text.replace(/\p{Surrogate}/gu, '\ufffd'))
    assert.equal(reader.next(), false)
  }
  for (const length of [
    0, 1, 23, 24, 25, 41, 42, 43, 62, 63, 64, 126, 127, 128, 129, 1023, 1024, 16_383, 16_384,
  ]) {
    for (const character of ['a', 'é', '漢', '😀', '\ud800', '\udc00']) {
      check(character.repeat(length))
      check(`${'a'.repeat(length)}${character}`)
    }
  }
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 300 }), check))
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), codes => check(String.fromCharCode(...codes))),
  )
})

test('a prepared text is the same as the text', () => {
  for (let length = 0; length < 70; length++) {
    const text = 'é.'.repeat(length)
    const field = PreparedField.text(bytes, text)
    assert.deepEqual(
      written(out => {
        out.prepared(field)
        out.prepared(field)
      }),
      written(out => {
        out.string(bytes, text)
        out.string(bytes, text)
      }),
    )
  }
})

test('a wrong guess of a length changes nothing in the encoding', () => {
  const outer = fieldKey(9, WireType.bytes)
  const sizes = [0, 1, 100, 126, 127, 128, 16_383, 16_384, 100_000, 3_000_000]
  for (const size of sizes) {
    const content = Buffer.alloc(size, 0x5a)
    const message = protobuf.Writer.create().uint32(bytes).bytes(content).finish()
    const want = Buffer.from(
      protobuf.Writer.create().uint32(outer).bytes(message).uint32(varint).int64(7).finish(),
    )
    for (const guess of sizes) {
      const got = written(out => {
        out.open(outer, guess)
        out.bytes(bytes, content)
        out.close()
        out.int(varint, 7)
      })
      assert.equal(got.equals(want), true, `size ${size}, guess ${guess}`)
    }
  }
})

test('a cleared writer keeps its buffer up to the bound that it is given', () => {
  const out = new Writer(64)
  out.bytes(bytes, Buffer.alloc(1000))
  const { capacity } = out
  out.clear()
  assert.deepEqual([out.length, out.capacity], [0, capacity])
  out.clear(100)
  assert.deepEqual([out.length, out.capacity], [0, 100])
  out.string(bytes, 'after')
  assert.deepEqual(Buffer.from(out.written()), Buffer.from('\x0a\x05after'))
})

test('a reader reads integers as protobufjs writes them', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), value => {
      const reader = new Reader(protobuf.Writer.create().uint32(varint).int64(value).finish())
      reader.next()
      assert.equal(reader.int(), value)
    }),
  )
})

test('a reader of foreign bytes ends or throws a RangeError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), foreign => {
      const reader = new Reader(foreign)
      try {
        while (reader.next()) reader.skip()
      } catch (error) {
        assert.equal(error instanceof RangeError, true, String(error))
      }
    }),
    { numRuns: 2000 },
  )
})

test('a reader says where a message is broken', () => {
  const check = (foreign: number[], message: RegExp) =>
    assert.throws(() => {
      const reader = new Reader(Uint8Array.from(foreign))
      while (reader.next()) reader.skip()
    }, message)
  check([0x0a, 5, 1], /^RangeError: cannot read protobuf message: it ends inside field 1 \(byte 2 of 3\)$/)
  check([0x09, 5, 1], /it ends inside field 1/)
  check([0x80], /it ends inside a number/)
  check([0x08, ...new Array(11).fill(0x80)], /a number of more than ten bytes/)
  check([0x00, 0x00], /field number 0/)
  check([0x0b], /wire type 3/)
})
