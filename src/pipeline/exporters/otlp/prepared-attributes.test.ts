import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldKey, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import { AttributeReader, Unfit } from './decode-value.ts'
import { encodeAttributes } from './encode-attributes.ts'
import { FieldCursor } from './field-cursor.ts'
import { PreparedAttributes } from './prepared-attributes.ts'

const key = fieldKey(9, WireType.bytes)
const out = new Writer()

/** Encodes one attribute as `encodeAttributes` does. True: it was prepared. */
function use(prepared: PreparedAttributes, name: string, value: AttributeValue): boolean {
  const known = prepared.name(0, name)
  if (known?.fieldOf(value) !== undefined) {
    known.hits++
    return true
  }
  out.clear()
  encodeAttributes(out, key, Attributes.of({ [name]: value }))
  if (known === undefined) prepared.addName(name)
  else prepared.addValue(known, value, out, 1)
  return false
}

test('attributes that recur are encoded as at first, whatever they are', () => {
  const values: AttributeValue[] = [
    '',
    'GET',
    'grüße 👋',
    'a'.repeat(64),
    'b'.repeat(65),
    0,
    -0,
    -1,
    0.5,
    NaN,
  ]
  values.push(2 ** 53, -(2 ** 63), true, false, ['a', ''], 'x\ud800')
  for (let round = 0; round < 4; round++)
    for (const [i, value] of values.entries()) {
      out.clear()
      encodeAttributes(out, key, Attributes.of({ [`name-${i}`]: value, same: value }))
      const read = new Attributes()
      const reader = new AttributeReader(read, new Unfit())
      const cursor = new FieldCursor(Buffer.from(out.written()))
      while (cursor.next()) reader.add(cursor)
      const whole =
        typeof value === 'string' ? Buffer.from(value).toString() : Object.is(value, -0) ? 0 : value
      assert.deepEqual(read.toObject(), { [`name-${i}`]: whole, same: whole }, `round ${round}`)
    }
})

test('memory is counted, bounded and given back, and texts that UTF-8 lacks are not kept', () => {
  const prepared = new PreparedAttributes()
  for (let i = 0; i < 10_000; i++) use(prepared, `half \ud800${i}`, 'a')
  assert.equal(prepared.bytes, 0)
  for (let i = 0; i < 3; i++) use(prepared, 'method', 'GET')
  const { bytes } = prepared
  for (let i = 0; i < 1000; i++) use(prepared, 'method', `\udc00${i % 10}`)
  assert.equal(prepared.bytes, bytes)
  for (let i = 0; i < 100_000; i++) use(prepared, `name ${i % 5000}`, i % 50)
  assert.ok(prepared.bytes < 1_000_000, `${prepared.bytes}`)
  const held = prepared.bytes
  assert.equal(prepared.shed(1), held)
  assert.equal(prepared.bytes, 0)
  for (let i = 0; i < 5000; i++) use(prepared, 'name 1', i)
  assert.ok(prepared.bytes >= 0)
})

test('values of a name are prepared again where they recur, and not where most are new', () => {
  const prepared = new PreparedAttributes()
  for (let i = 0; i < 3; i++) use(prepared, 'route', '/a')
  assert.ok(use(prepared, 'route', '/a'))
  for (let i = 0; i < 1024; i++) use(prepared, 'route', `/${i}`)
  assert.ok(!use(prepared, 'route', '/a'))
  const { bytes } = prepared
  for (let i = 0; i < 1000; i++) use(prepared, 'route', `/new/${i}`)
  assert.equal(prepared.bytes, bytes)
  for (let i = 0; i < 20_000; i++) use(prepared, 'route', '/a')
  assert.ok(use(prepared, 'route', '/a'))
})
