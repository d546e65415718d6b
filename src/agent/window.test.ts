import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guarded } from './window.ts'

test('a fault in keeping something ends that, is told once, and reaches nobody else', () => {
  const told: string[] = []
  const kept: string[] = []
  const keep = guarded(
    { error: message => told.push(message) },
    'traces',
    (first: string, second: string) => {
      if (first === 'bad') throw new Error('it cannot be kept')
      kept.push(first + second)
    },
  )
  keep('a', '1')
  keep('bad', '2')
  keep('b', '3')
  assert.deepEqual(kept, ['a1'])
  assert.equal(told.length, 1)
  assert.match(told[0]!, /traces no longer/)
})
