import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type Batch, plainBatch } from '../../foundation/model/batch.ts'
import {
  type Compression,
  compress,
  decompress,
  decompressSync,
  recompress,
  zstdAvailable,
} from './compression.ts'

const text = Buffer.from('GET /users/17 '.repeat(500))
const compressions: ('gzip' | 'zstd')[] = zstdAvailable ? ['gzip', 'zstd'] : ['gzip']

test('a batch is compressed and comes out as it was', async () => {
  for (const compression of compressions) {
    const batch = plainBatch('logs', 7, text, 3)
    const compressed = await compress(batch, compression)
    assert.equal(compressed.encoding, compression)
    assert.ok(compressed.body.length < text.length / 10, String(compressed.body.length))
    assert.deepEqual({ ...compressed, body: text, encoding: 'identity' }, batch)
    assert.deepEqual(Buffer.from(await decompress(compressed)), text)
    assert.deepEqual(Buffer.from(decompressSync(compression, compressed.body)), text)
    assert.equal(await compress(compressed, 'gzip'), compressed)
  }
})

test('a backlog follows the settings, and nothing else is touched', async () => {
  const plain = plainBatch('logs', 7, text, 3)
  for (const before of compressions) {
    const compressed = await compress(plain, before)
    assert.equal(await recompress(compressed, before), compressed)
    assert.deepEqual({ ...(await recompress(compressed, 'none')), body: text }, plain)
    for (const after of compressions) assert.equal((await recompress(compressed, after)).encoding, after)
    await assert.rejects(
      recompress({ ...compressed, plainBytes: 1 }, 'none'),
      /cannot decompress a batch of logs/,
    )
  }
  assert.equal(await recompress(plain, 'gzip'), plain)
})

test('a small compressed batch keeps no block of the compressor alive', async () => {
  const { body } = await compress(plainBatch('logs', 1, text), 'gzip')
  assert.ok(body.buffer.byteLength <= 2 * body.length, String(body.buffer.byteLength))
  assert.deepEqual(gunzipSync(body), text)
})

test('what is small, does not shrink or is to stay plain is left alone', async () => {
  const check = async (body: Uint8Array, compression: Compression) => {
    const batch = plainBatch('traces', 1, body)
    assert.equal(await compress(batch, compression), batch)
    assert.equal(await decompress(batch), body)
  }
  await check(text.subarray(0, 511), 'gzip')
  await check(randomBytes(4096), 'gzip')
  await check(text, 'none')
  await check(new Uint8Array(), 'zstd')
  assert.equal(decompressSync('identity', text), text)
})

test('a body that is not what its batch says is refused, and a bomb before it grows', async () => {
  const check = (change: Partial<Batch>, want: RegExp) => {
    const batch: Batch = {
      ...plainBatch('logs', 1, gzipSync(text)),
      encoding: 'gzip',
      plainBytes: text.length,
    }
    return assert.rejects(decompress({ ...batch, ...change }), want)
  }
  const zeros = gzipSync(Buffer.alloc(80 << 20))
  await check({ plainBytes: text.length - 1 }, /cannot decompress a batch of logs \(gzip\): /)
  await check({ plainBytes: text.length + 1 }, /expected 7001 bytes, got 7000/)
  await check({ body: zeros }, /larger than/)
  await check({ body: zeros, plainBytes: 80 << 20 }, /the limit is 67108864/)
  await check({ body: text }, /header/)
  await check({ body: gzipSync(text).subarray(0, 50) }, /end of file/)
  assert.throws(() => decompressSync('gzip', zeros), /cannot decompress a body \(gzip\): .*larger than/)
  assert.throws(() => decompressSync('zstd', text), /cannot decompress a body \(zstd\)/)
})
