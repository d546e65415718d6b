import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import { Flag, type FrameHead, FrameType } from './frames.ts'

/** Maximum bytes of one header block. */
const maxBlock = 65_536
const nothing = Buffer.alloc(0)
const leastBytes = 1_024
/** A larger buffer is only kept while a block is in progress. */
const ownBytes = 4_096
/**
 * Buffers above `ownBytes`, whose sizes are powers of two, for the next block of any connection: consecutive large
 * blocks would otherwise produce garbage faster than V8 collects it.
 */
const spare: Buffer[] = []
const mostSpare = 16

/** A header block split over several frames, or a frame split over several calls. */
export class HeaderBlock {
  /** Its stream; 0 if no block is in progress. */
  stream = 0
  endStream = false
  pushed = false
  bytes: Buffer = nothing
  length = 0
  /** Bytes of its frame still to come. */
  left = 0
  /** Its last frame has begun. */
  last = false
  /** It is larger than the limit, or one of its frames is malformed. */
  spoilt = false
  #frameStart = 0
  #padded = false
  #before = 0

  /** One of its frames begins, with its payload at `flow.at`. */
  begin(head: FrameHead): void {
    if (head.type !== FrameType.continuation) {
      this.stream = head.stream
      this.endStream = (head.flags & Flag.endStream) !== 0
      this.pushed = head.type === FrameType.pushPromise
      this.length = 0
      this.spoilt = false
    }
    this.#padded = head.type !== FrameType.continuation && (head.flags & Flag.padded) !== 0
    this.#before = bytesBefore(head)
    this.last = (head.flags & Flag.endHeaders) !== 0
    this.left = head.length
    this.#frameStart = this.length
  }

  /** Reads the available bytes. True if the frame is complete. */
  take(flow: ByteFlow): boolean {
    const count = Math.min(this.left, flow.end - flow.at)
    if (this.length + count > maxBlock) this.spoilt = true
    if (!this.spoilt) {
      if (this.length + count > this.bytes.length) this.#grow(count)
      flow.bytes.copy(this.bytes, this.length, flow.at, flow.at + count)
      this.length += count
    }
    flow.at += count
    this.left -= count
    if (this.left > 0) return false
    if (!this.spoilt) this.#strip()
    return true
  }

  /** It ended, or is unknown from now on. */
  clear(): void {
    this.stream = 0
    this.left = 0
    this.length = 0
    if (this.bytes.length <= ownBytes) return
    putAway(this.bytes)
    this.bytes = nothing
  }

  /** Removes bytes that are not part of the block: padding, priority, the promised stream. */
  #strip(): void {
    const { bytes } = this
    const frameStart = this.#frameStart
    const padding = this.#padded ? bytes[frameStart]! : 0
    const start = frameStart + this.#before
    const end = this.length - padding
    if (end < start) {
      this.spoilt = true
      return
    }
    bytes.copyWithin(frameStart, start, end)
    this.length = frameStart + end - start
  }

  #grow(count: number): void {
    const old = this.bytes
    this.bytes = bufferOf(2 ** Math.ceil(Math.log2(Math.max(leastBytes, this.length + count))))
    old.copy(this.bytes, 0, 0, this.length)
    putAway(old)
  }
}

function bufferOf(size: number): Buffer {
  for (let i = spare.length - 1; i >= 0; i--) {
    const found = spare[i]!
    if (found.length !== size) continue
    spare[i] = spare[spare.length - 1]!
    spare.pop()
    return found
  }
  return Buffer.allocUnsafeSlow(size)
}

function putAway(bytes: Buffer): void {
  if (bytes.length > ownBytes && spare.length < mostSpare) spare.push(bytes)
}

/** Bytes of a frame's payload before its part of the block: length of padding, priority, promised stream. */
export function bytesBefore(head: FrameHead): number {
  if (head.type === FrameType.continuation) return 0
  const padding = (head.flags & Flag.padded) === 0 ? 0 : 1
  if (head.type === FrameType.pushPromise) return padding + 4
  return padding + ((head.flags & Flag.priority) === 0 ? 0 : 5)
}
