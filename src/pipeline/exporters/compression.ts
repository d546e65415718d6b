import * as zlib from 'node:zlib'
import type { Batch, BodyEncoding } from '../../foundation/model/batch.ts'

/** Compression of bodies, a value of `otlp.compression`. */
export type Compression = 'gzip' | 'zstd' | 'none'

/** Whether the runtime supports zstd (Node.js since 22.15 and 23.8). */
export const zstdAvailable: boolean = typeof zlib.zstdCompress === 'function'

/** Minimum size to compress; below, the frame costs what compression saves. */
const minBytes = 512
/** Maximum decompressed size: no request is larger. */
const maxPlainBytes = 64 * 1024 * 1024
/** Level 1 of gzip costs a third of the CPU of level 6 for a tenth more bytes; zstd's own level 1 is below that. */
const level = 1

/**
 * Compresses the body of a batch in the thread pool, as it takes milliseconds. Returns the same batch if it is small,
 * already compressed, or would not shrink. Uses gzip if the runtime lacks zstd. Never rejects.
 */
export async function compress(batch: Batch, compression: Compression): Promise<Batch> {
  if (compression === 'none' || batch.encoding !== 'identity' || batch.body.length < minBytes) return batch
  const encoding = usedEncoding(compression)
  try {
    const compressed = await deflate(encoding, batch.body)
    if (compressed.length >= batch.body.length) return batch
    // zlib returns a view of a 16 KiB block, which a queued batch would retain whole.
    const body =
      compressed.buffer.byteLength > 2 * compressed.length ? new Uint8Array(compressed) : compressed
    // `free` would return the buffer of the uncompressed body.
    const { free: _, ...compressedBatch } = { ...batch, body, encoding }
    return compressedBatch
  } catch {
    return batch // it can be sent uncompressed, so running out of memory here loses nothing
  }
}

/**
 * Recompresses a batch that was compressed with another setting than `compression`. An uncompressed batch stays so. If
 * the runtime lost zstd, the batch is sent as it is: its receiver accepted zstd before. Rejects as `decompress` does.
 */
export async function recompress(batch: Batch, compression: Compression): Promise<Batch> {
  const { encoding } = batch
  if (encoding === 'identity' || (compression !== 'none' && encoding === usedEncoding(compression)))
    return batch
  if (encoding === 'zstd' && !zstdAvailable) return batch
  return compress({ ...batch, body: await decompress(batch), encoding: 'identity' }, compression)
}

/** Encoding that `compress` uses in this runtime. */
function usedEncoding(compression: 'gzip' | 'zstd'): 'gzip' | 'zstd' {
  return compression === 'zstd' && zstdAvailable ? 'zstd' : 'gzip'
}

/** Decompressed request of a batch. Rejects if the body does not match the batch's encoding and size. */
export async function decompress(batch: Batch): Promise<Uint8Array> {
  const { signal, encoding, plainBytes } = batch
  const what = `cannot decompress a batch of ${signal} (${encoding})`
  if (encoding === 'identity') return batch.body
  if (plainBytes > maxPlainBytes)
    throw new Error(`${what}: it declares ${plainBytes} bytes; the limit is ${maxPlainBytes}`)
  let plain: Uint8Array
  try {
    plain = await inflate(encoding, batch.body, plainBytes)
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
  if (plain.length !== plainBytes)
    throw new Error(`${what}: expected ${plainBytes} bytes, got ${plain.length}`)
  return plain
}

/** As `decompress`, but synchronous and limited only to 64 MiB: for the command line. Throws if it fails. */
export function decompressSync(encoding: BodyEncoding, body: Uint8Array): Uint8Array {
  if (encoding === 'identity') return body
  const options = { maxOutputLength: maxPlainBytes }
  try {
    if (encoding === 'gzip') return zlib.gunzipSync(body, options)
    if (!zstdAvailable) throw withoutZstd()
    return zlib.zstdDecompressSync(body, options)
  } catch (error) {
    throw new Error(`cannot decompress a body (${encoding}): ${(error as Error).message}`, { cause: error })
  }
}

function deflate(encoding: 'gzip' | 'zstd', body: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, compressed: Uint8Array): void =>
      error ? reject(error) : resolve(compressed)
    if (encoding === 'gzip') zlib.gzip(body, { level, chunkSize: chunkOf(body.length) }, done)
    else zlib.zstdCompress(body, { params: { [zlib.constants.ZSTD_c_compressionLevel]: level } }, done)
  })
}

/** Telemetry shrinks to an eighth or less; each further chunk would wake a thread again. */
function chunkOf(bytes: number): number {
  return Math.min(256, Math.max(16, 2 ** Math.ceil(Math.log2(bytes / 8 / 1024)))) * 1024
}

function inflate(encoding: 'gzip' | 'zstd', body: Uint8Array, maxOutputLength: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, plain: Uint8Array): void => (error ? reject(error) : resolve(plain))
    const options = { maxOutputLength: Math.max(1, maxOutputLength) }
    if (encoding === 'gzip') zlib.gunzip(body, options, done)
    else if (zstdAvailable) zlib.zstdDecompress(body, options, done)
    else reject(withoutZstd())
  })
}

function withoutZstd(): Error {
  return new Error('this runtime has no zstd; run svc with Node.js 22.15 or newer')
}
