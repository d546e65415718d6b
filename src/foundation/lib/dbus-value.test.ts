import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeMessage, encodeCall, messageSize } from './dbus-message.ts'
import { DBusReader, type DBusValue, DBusWriter } from './dbus-value.ts'

function write(signature: string, values: readonly DBusValue[]): Buffer {
  const writer = new DBusWriter()
  writer.write(signature, values)
  return writer.bytes()
}

const utf8 = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .map(text => text.replace(/[\0\p{Surrogate}]/gu, ''))
const basics: Readonly<Record<string, fc.Arbitrary<DBusValue>>> = {
  y: fc.integer({ min: 0, max: 255 }),
  n: fc.integer({ min: -32768, max: 32767 }),
  q: fc.integer({ min: 0, max: 65535 }),
  i: fc.integer(),
  u: fc.nat({ max: 0xffffffff }),
  h: fc.nat({ max: 0xffffffff }),
  x: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  t: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  d: fc.double({ noNaN: true }),
  b: fc.boolean(),
  s: utf8,
  o: fc.constantFrom('/', '/org/freedesktop/systemd1/unit/a_2eservice'),
  g: fc.constantFrom('', 'a{sv}', '(yv)'),
}

interface Typed {
  readonly signature: string
  readonly value: DBusValue
}

/** A complete type with a value of it, nested no deeper than this. */
function typed(depth: number): fc.Arbitrary<Typed> {
  const basic = fc
    .constantFrom(...Object.keys(basics))
    .chain(signature => basics[signature]!.map(value => ({ signature, value })))
  if (depth === 0) return basic
  const struct = fc.array(typed(depth - 1), { minLength: 1, maxLength: 3 }).map(fields => ({
    signature: `(${fields.map(({ signature }) => signature).join('')})`,
    value: fields.map(({ value }) => value),
  }))
  const variant = typed(depth - 1).map(inner => ({ signature: 'v', value: inner }))
  const lists = fc.tuple(typed(depth - 1), fc.nat({ max: 4 })).map(([{ signature, value }, size]): Typed => {
    const values = Array<DBusValue>(size).fill(value)
    return {
      signature: `a${signature}`,
      value: signature === 'y' ? Uint8Array.from(values as number[]) : values,
    }
  })
  const dictionary = fc.tuple(fc.array(utf8, { maxLength: 4 }), typed(depth - 1)).map(([keys, inner]) => ({
    signature: `a{s${inner.signature}}`,
    value: keys.map(name => [name, inner.value]),
  }))
  return fc.oneof(basic, struct, variant, lists, dictionary)
}

test('whatever is written is read as it was', () => {
  fc.assert(
    fc.property(fc.array(typed(3), { maxLength: 4 }), all => {
      const signature = all.map(one => one.signature).join('')
      fc.pre(signature.length <= 255)
      const values = all.map(({ value }) => value)
      assert.deepEqual(new DBusReader(write(signature, values), true).read(signature), values)
    }),
  )
})

test('bytes are those of the specification, in both orders', () => {
  const check = (hex: string, littleEndian: boolean, signature: string, want: readonly DBusValue[]) => {
    const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    assert.deepEqual(new DBusReader(bytes, littleEndian).read(signature), want)
    if (littleEndian) assert.deepEqual(write(signature, want), bytes)
  }
  check('03000000 666f6f00 2b000000', true, 'su', ['foo', 43])
  check('00000003 666f6f00 0000002b', false, 'su', ['foo', 43])
  check('01 000000 00000000 feffffffffffffff', true, 'yx', [1, -2n])
  check('01 000000 00000000 fffffffffffffffe', false, 'yx', [1, -2n])
  check('08000000 00000000 0500000000000000', true, 'at', [[5n]])
  check('01000000 6b', true, 'ay', [new Uint8Array([0x6b])])
  check('00 01 ff 80', false, 'nn', [1, -128])
  check('0001 8000', false, 'qq', [1, 32768])
  check('fffffffe 00000001', false, 'ib', [-2, true])
  check('3ff8000000000000 00000000000000ff', false, 'dt', [1.5, 255n])
  check('0173 00 00 00000001 61 00', false, 'v', [{ signature: 's', value: 'a' }])
})

test('bytes against the rules are refused', () => {
  const check = (hex: string, signature: string, want: RegExp) =>
    assert.throws(
      () => new DBusReader(Buffer.from(hex.replaceAll(' ', ''), 'hex'), true).read(signature),
      want,
    )
  check('', 'u', /larger than its message/)
  check('04000000 61626300', 's', /larger than its message/)
  check('ffffffff 61626300', 's', /larger than its message/)
  check('03000000 61626364', 's', /invalid string/)
  check('03000000 61006300', 's', /invalid string/)
  check('02000000 c32800', 's', /invalid string/)
  check('02000000 2f2f00', 'o', /object path/)
  check('02000000', 'b', /neither true nor false/)
  check('01 01 0000 05000000', 'yu', /padding is not zero/)
  check('03000000 05000000 05000000', 'au', /length of an array is wrong/)
  check('ff000000 05000000', 'au', /larger than its message/)
  check('00 00', 'v', /exactly one type/)
  check('02 7575 00', 'v', /exactly one type/)
  check('01 7a 00', 'v', /not a signature/)
  check('', 'a', /not a signature/)
  check('', '()', /not a signature/)
  check('', '(u', /not a signature/)
  check('', '{su}', /not a signature/)
  check('', 'a{vu}', /not a signature/)
  check('', `${'a'.repeat(40)}u`, /not a signature/)
  check('', 'u'.repeat(256), /255/)
  check('017600'.repeat(100), 'v', /too deeply/)
  const many = Buffer.alloc(4 + 0x200000)
  many.writeUInt32LE(0x200000)
  assert.throws(() => new DBusReader(many, true).read('aq'), /more than 524288 values/)
})

test('values that are not of their type are not written', () => {
  const check = (signature: string, values: readonly DBusValue[]) =>
    assert.throws(() => write(signature, values))
  check('u', [-1])
  check('u', [])
  check('t', [2n ** 64n])
  check('s', ['a\0b'])
  check('s', ['\ud800'])
  check('o', ['nowhere'])
  check('(uu)', [[1]])
  check('v', [{ signature: 'uu', value: 1 }])
})

test('any bytes are a message or an error, and nothing else', () => {
  const call = encodeCall(1, {
    destination: 'a.b',
    path: '/',
    interface: 'a.b',
    member: 'C',
    signature: 's',
    body: ['x'],
  })
  assert.equal(messageSize(call), call.length)
  assert.deepEqual(decodeMessage(call).body(), ['x'])
  fc.assert(
    fc.property(fc.nat(call.length - 1), fc.nat(255), (at, byte) => {
      const bytes = Buffer.from(call)
      bytes[at] = byte
      try {
        if (messageSize(bytes) === bytes.length) decodeMessage(bytes).body()
      } catch (error) {
        assert.equal((error as Error).name, 'Error')
      }
    }),
    { numRuns: 2000 },
  )
})
