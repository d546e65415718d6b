import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes } from './attributes.ts'

test('a set that forgets is empty and holds no value any more', () => {
  const attributes = Attributes.of({ a: 'long text', b: 1 })
  attributes.forget()
  assert.deepEqual([attributes.size, attributes.values], [0, ['', '']])
  attributes.add('c', 'x')
  assert.deepEqual(attributes.toObject(), { c: 'x' })
})
