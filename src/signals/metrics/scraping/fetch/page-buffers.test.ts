import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Lease, PageBuffers } from './page-buffers.ts'

const mebi = 1024 * 1024

test('a buffer that was given back is lent again', () => {
  const buffers = new PageBuffers({ keptBytes: mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
  const first = buffers.lease(150_000)!
  const { buffer } = first
  assert.ok(buffer.length >= 150_000 && buffer.length < 200_000)
  first.release()
  first.release()
  assert.deepEqual([buffers.leasedBytes, buffers.keptBytes], [0, buffer.length])
  assert.equal(buffers.lease(160_000)!.buffer, buffer)
  assert.notEqual(buffers.lease(160_000)!.buffer, buffer)
})

test('a large one is not spent on a small page', () => {
  const buffers = new PageBuffers({ keptBytes: 8 * mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
  const large = buffers.lease(4 * mebi)!
  large.release()
  assert.ok(buffers.lease(1000)!.buffer.length < 100_000)
  assert.equal(buffers.keptBytes, large.buffer.length)
})

test('large pages wait for each other, small ones for nobody', () => {
  const buffers = new PageBuffers({ keptBytes: mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
  const held = buffers.lease(7 * mebi)!
  assert.equal(buffers.lease(2 * mebi), undefined)
  for (let i = 0; i < 50; i++) assert.ok(buffers.lease(100_000))
  assert.equal(buffers.lease(mebi), undefined)
  assert.equal(buffers.lease(mebi, mebi - 1), undefined)
  assert.ok(buffers.lease(mebi, mebi))
  held.release()
})

test('many who were once given a large page are not given all memory', () => {
  const buffers = new PageBuffers({ keptBytes: mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
  for (let i = 0; i < 100; i++) buffers.lease(mebi, mebi)
  assert.equal(buffers.leasedBytes, 16 * mebi)
  assert.ok(buffers.lease(100_000))
})

test('what nobody uses is given back where memory is short, and less is lent where there is less of it', () => {
  const buffers = new PageBuffers({ keptBytes: 4 * mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
  const leases = [buffers.lease(mebi)!, buffers.lease(mebi)!, buffers.lease(mebi)!]
  assert.equal(buffers.bytes, 3 * mebi)
  assert.equal(buffers.shed(mebi), 0, 'all are used')
  for (const lease of leases) lease.release()
  assert.equal(buffers.shed(mebi + 1), 2 * mebi)
  assert.equal(buffers.bytes, mebi)
  buffers.limit(2 * mebi)
  assert.equal(buffers.lease(3 * mebi), undefined)
  assert.ok(buffers.lease(2 * mebi))
})

test('what nobody uses is given up', async () => {
  const buffers = new PageBuffers({ keptBytes: mebi, leasedBytes: 8 * mebi, keptMs: 20 })
  buffers.lease(1000)!.release()
  for (const deadline = performance.now() + 20_000; buffers.keptBytes > 0; ) {
    assert.ok(performance.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
})

test('no two have the same buffer, and the sums are right, in any order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 3 * mebi }), fc.nat(4)), { maxLength: 40 }),
      steps => {
        const buffers = new PageBuffers({ keptBytes: 2 * mebi, leasedBytes: 8 * mebi, keptMs: 60_000 })
        const out: Lease[] = []
        for (const [bytes, give] of steps) {
          const lease = buffers.lease(bytes)
          if (lease !== undefined) {
            assert.ok(lease.buffer.length >= bytes)
            assert.ok(out.every(other => other.buffer !== lease.buffer))
            out.push(lease)
          }
          if (give > 1) out.splice(give % (out.length + 1), 1)[0]?.release()
          assert.equal(
            buffers.leasedBytes,
            out.reduce((sum, { buffer }) => sum + buffer.length, 0),
          )
          assert.ok(buffers.keptBytes <= 2 * mebi)
        }
      },
    ),
    { numRuns: 300 },
  )
})
