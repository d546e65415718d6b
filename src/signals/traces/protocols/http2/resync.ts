import { FrameHead, FrameType, frameHeadBytes } from './frames.ts'
import type { StreamTable } from './open-stream.ts'

/** Maximum number of frame heads that one search reads in false chains. */
const maxLooks = 16_384
/** Consecutive likely frames that count as proof. */
const enough = 4
/** How far a stream's number may be above the newest one seen. */
const maxAhead = 2 ** 20
const maxUnseen = 2 ** 26

const frame = new FrameHead()
let looks = 0

/**
 * Offset of a frame in `bytes[at, end)`, -1 if there is none. At the beginning of a call, consecutive likely frames are
 * enough, of which the last may be cut off. Elsewhere they must belong to known or new streams, and either end where
 * the bytes end or be several.
 */
export function findFrame(
  bytes: Buffer,
  at: number,
  end: number,
  atCall: boolean,
  request: boolean,
  newest: number,
  streams: StreamTable,
): number {
  looks = 0
  if (atCall && isChain(bytes, at, end, false, request, newest, streams)) return at
  for (let from = at; from + frameHeadBytes <= end && looks < maxLooks; from++)
    if (isChain(bytes, from, end, true, request, newest, streams)) return from
  return -1
}

function isChain(
  bytes: Buffer,
  start: number,
  end: number,
  strict: boolean,
  request: boolean,
  newest: number,
  streams: StreamTable,
): boolean {
  let at = start
  let last = newest
  let count = 0
  for (; end - at >= frameHeadBytes; count++) {
    if (count > 0) looks++
    frame.read(bytes, at)
    if (!frame.likely || bytes[at + 5]! > 0x7f || !isStream(frame, strict, request, last, streams))
      return false
    if (frame.type === FrameType.headers && frame.stream > last) last = frame.stream
    at += frameHeadBytes + frame.length
  }
  if (at === end) return true
  if (count < (strict ? enough : 1)) return false
  // The last one is cut off, in its head or in its payload.
  return at < end || frame.type === FrameType.data || frame.type === FrameType.headers
}

/** Whether the frame's stream may exist. Streams opened by the server are not followed. */
function isStream(
  { stream, type }: FrameHead,
  strict: boolean,
  request: boolean,
  newest: number,
  streams: StreamTable,
): boolean {
  if (stream === 0) return true
  if ((stream & 1) === 0) return false
  if (streams.has(stream)) return true
  if (strict) return request && type === FrameType.headers && stream > newest && stream - newest < maxAhead
  return newest === 0 ? stream < maxUnseen : stream - newest < maxAhead
}
