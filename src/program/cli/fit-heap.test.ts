import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentBytes, heapLimitMiB } from '../../foundation/lib/memory-room.ts'
import { fittedArguments } from './fit-heap.ts'

const Mi = 1024 * 1024

test('an agent has 40 % of the memory there is, from 160Mi to 512Mi, unless a size is set', () => {
  assert.equal(agentBytes('auto', 128 * Mi), 160 * Mi)
  assert.equal(agentBytes('auto', 1000 * Mi), 400 * Mi)
  assert.equal(agentBytes('auto', 64 * 1024 * Mi), 512 * Mi)
  assert.equal(agentBytes(1024 * Mi, 512 * Mi), 1024 * Mi)
})

test('the runtime is started again with another limit only where the one it has does not fit', () => {
  const given = ['--optimize-for-size', '--max-old-space-size=256']
  assert.equal(fittedArguments(given, 512 * Mi), undefined)
  assert.equal(fittedArguments(given, 490 * Mi), undefined)
  assert.deepEqual(fittedArguments(given, 160 * Mi), ['--optimize-for-size', '--max-old-space-size=80'])
  assert.deepEqual(fittedArguments(given, 2048 * Mi), ['--optimize-for-size', '--max-old-space-size=1024'])
  assert.equal(fittedArguments(fittedArguments(given, 200 * Mi)!, 200 * Mi), undefined)
  assert.equal(fittedArguments([], 160 * Mi), undefined)
  assert.equal(heapLimitMiB(512 * Mi), 256)
})
