import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject, listOf, objectOf, parseObject, textOf } from './json-fields.ts'

test('a field of another type is one that is not known', () => {
  for (const other of [undefined, null, 7, true, 'text', []]) assert.deepEqual(objectOf(other), {})
  for (const other of [undefined, null, 7, {}, [], 'x'.repeat(1025)]) assert.equal(textOf(other), '')
  for (const other of [undefined, null, 7, {}, 'text']) assert.deepEqual(listOf(other), [])
  assert.deepEqual(objectOf({ a: 1 }), { a: 1 })
  assert.equal(textOf('x'.repeat(1024)).length, 1024)
  assert.deepEqual(listOf([1, 2, 3], 2), [1, 2])
  assert.ok(isObject({}) && !isObject([]) && !isObject(null))
})

test('what is no object in JSON is undefined', () => {
  for (const text of ['', '{', '[]', 'null', '7', '"a"', '{"a":1} {'])
    assert.equal(parseObject(Buffer.from(text)), undefined)
  assert.deepEqual(parseObject(Buffer.from(' {"a": {"b": []}} ')), { a: { b: [] } })
})
