import { createGunzip } from 'node:zlib'
import type { AnswerFault } from './answer-reader.ts'
import type { Lease, PageBuffers } from './page-buffers.ts'

export interface GunzipLimits {
  readonly bodyBytes: number
  /** Expected size. */
  readonly expectedBytes: number
}

/** Small pages of similar lines compress better than 1:100. */
const innocentBytes = 1024 * 1024
const maxRatio = 100
const chunkBytes = 64 * 1024

export interface Unpacking {
  /** The decompressed bytes and their buffer. Never rejects. */
  readonly done: Promise<{ readonly lease: Lease; readonly bytes: number } | AnswerFault>
  /** Aborts it. */
  stop(): void
}

/** Decompresses gzip in the thread pool, in pieces, up to the limits. */
export function gunzipInto(packed: Buffer, limits: GunzipLimits, buffers: PageBuffers): Unpacking {
  const gunzip = createGunzip({ chunkSize: chunkBytes })
  const { bodyBytes } = limits
  const expected = Math.min(limits.expectedBytes, bodyBytes) + chunkBytes
  let lease = buffers.lease(expected, expected)
  let bytes = 0
  let settle: (end: { lease: Lease; bytes: number } | AnswerFault) => void = () => undefined
  const done = new Promise<{ lease: Lease; bytes: number } | AnswerFault>(resolve => {
    settle = resolve
  })
  let over = false
  const finish = (fault: AnswerFault | undefined): void => {
    if (over) return
    over = true
    gunzip.destroy()
    if (fault === undefined) settle({ lease: lease!, bytes })
    else {
      lease?.release()
      settle(fault)
    }
  }
  const noMemory = (): void =>
    finish({
      type: 'memory',
      cause: 'no memory left for pages in progress; raise limits.memory',
    })
  gunzip.on('data', (chunk: Buffer) => {
    if (over || lease === undefined) return
    const total = bytes + chunk.length
    if (total > bodyBytes) {
      finish({ type: 'body_too_large', cause: `the decompressed body is larger than ${bodyBytes} bytes` })
      return
    }
    if (total > innocentBytes && total > maxRatio * packed.length) {
      finish({
        type: 'bad_encoding',
        cause: `${packed.length} bytes of gzip expand more than ${maxRatio} times; rejected as a decompression bomb`,
      })
      return
    }
    if (total > lease.buffer.length) {
      const larger = buffers.lease(Math.min(2 * lease.buffer.length, bodyBytes + chunkBytes))
      if (larger === undefined) {
        noMemory()
        return
      }
      lease.buffer.copy(larger.buffer, 0, 0, bytes)
      lease.release()
      lease = larger
    }
    chunk.copy(lease.buffer, bytes)
    bytes = total
  })
  gunzip.on('error', error =>
    finish({ type: 'bad_encoding', cause: `cannot decompress gzip: ${error.message}` }),
  )
  gunzip.once('end', () => finish(undefined))
  if (lease === undefined) noMemory()
  else gunzip.end(packed)
  return { done, stop: () => finish({ type: 'stopped', cause: 'the scrape was cancelled' }) }
}
