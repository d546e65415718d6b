import { FrameHead, FrameType, frameHeadBytes } from './frames.ts'
import type { StreamTable } from './open-stream.ts'

/** Frame heads that one search looks at, at most, in chains that lead nowhere. */
const maxLooks = 16_384
/** So many likely frames in a row are no accident. */
const enough = 4
/** How far a stream's number may be above the newest that was seen. */
const maxAhead = 2 ** 20
const maxUnseen = 2 ** 26

const frame = new FrameHead()
let looks = 0

/**
 * Where a frame begins in `bytes[at, end)`, -1 for nowhere. At the beginning of a call likely frames in a row will do,
 * of which the last may be cut off. Anywhere else they have to be of known or new streams, and to end where the bytes
 * end or to be several.
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
  // The last one is cut off, be it in its head or in its payload.
  return at < end || frame.type === FrameType.data || frame.type === FrameType.headers
}

/** Whether the frame's stream may be there. Those that the server opens are not followed. */
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
