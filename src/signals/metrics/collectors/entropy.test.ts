import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { entropy } from './entropy.ts'

test('the pool is shown', async () => {
  const { lines, outcome } = await readWith(entropy)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_entropy_available_bits gauge',
    'node_entropy_available_bits 256',
    '# TYPE node_entropy_pool_size_bits gauge',
    'node_entropy_pool_size_bits 4096',
  ])
})

test('junk is no success', t =>
  survivesJunk(t, entropy, ['proc/sys/kernel/random/entropy_avail', 'proc/sys/kernel/random/poolsize']))
