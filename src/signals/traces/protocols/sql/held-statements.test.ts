import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeldStatements } from './held-statements.ts'
import { type SqlStatement, unknownStatement } from './statements.ts'

const statement = (length: number): SqlStatement => ({ ...unknownStatement, text: 'x'.repeat(length) })

test('statements are held to a number and to bytes, and the oldest ones go', () => {
  const held = new HeldStatements<number>()
  for (let i = 0; i < 5_000; i++) held.set(i, statement(1_000))
  assert.ok(held.bytes > 200_000 && held.bytes <= 262_144, `${held.bytes}`)
  assert.equal(held.get(0), undefined)
  assert.equal(held.get(4_999)?.text.length, 1_000)
  for (let i = 0; i < 5_000; i++) held.set(i, statement(0))
  assert.ok(held.get(4_100) !== undefined && held.get(3_900) === undefined)
  held.clear()
  assert.equal(held.bytes, 0)
})

test('what connections share is counted once, and again when nobody else has it', () => {
  const [one, two] = [new HeldStatements<string>(), new HeldStatements<string>()]
  const shared = statement(1_000)
  one.set('a', shared)
  two.set('a', shared)
  assert.ok(one.bytes > 1_000 && two.bytes < 200)
  one.set('a', shared)
  one.clear()
  two.clear()
  assert.deepEqual([one.bytes, two.bytes, shared.holders], [0, 0, 0])
  two.set('b', shared)
  assert.ok(two.bytes > 1_000)
})
