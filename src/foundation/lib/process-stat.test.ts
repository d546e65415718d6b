import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isEnding, statFields } from './process-stat.ts'

test('fields begin behind the name, whatever that holds', () => {
  assert.deepEqual(statFields('7 (a) b) (c) S 1 2 3', 3), ['S', '1', '2'])
  assert.deepEqual(statFields('', 3), [''])
})

test('a process that works is not ending, and one with the flag is', () => {
  assert.equal(isEnding(statFields(readFileSync('/proc/self/stat', 'latin1'), 7)), false)
  assert.equal(isEnding(statFields('7 (a) Z 1 7 7 0 -1 4194308 0', 7)), true)
  assert.equal(isEnding([]), false)
})
