import { ByteRange } from '../../lib/byte-range.ts'
import type { Interner } from '../../lib/interner.ts'
import type { TraceContext } from '../../model/stream.ts'
import { parseTraceparent } from '../../model/traceparent.ts'

/** The version line is `NATS/1.0`, with a status behind it where the server speaks for itself (NATS ADR-4). */
const version = 'NATS/1.0'
const lineFeed = 0x0a

/** The headers of a message. Made once and read again. */
export class Headers {
  /** 0: none. */
  status = 0
  private readonly name = new ByteRange()
  private readonly value = new ByteRange()
  private readonly states: Interner

  constructor(states: Interner) {
    this.states = states
  }

  /** Reads what of them is in `bytes[start, end)`. */
  read(bytes: Buffer, start: number, end: number, context: TraceContext | undefined): void {
    this.status = statusOf(bytes, start, end)
    if (context === undefined) return
    for (let at = start; at < end; ) {
      let lineEnd = at
      while (lineEnd < end && bytes[lineEnd] !== lineFeed) lineEnd++
      if (lineEnd < end) this.readLine(bytes, at, lineEnd, context)
      at = lineEnd + 1
    }
  }

  private readLine(bytes: Buffer, start: number, end: number, context: TraceContext): void {
    const { name, value } = this
    let colon = start
    while (colon < end && bytes[colon] !== 0x3a) colon++
    if (colon === end) return
    name.set(start, colon)
    value.set(colon + 1, bytes[end - 1] === 0x0d ? end - 1 : end)
    value.trim(bytes)
    if (name.spells(bytes, 'traceparent'))
      context.flags = parseTraceparent(bytes, value.start, value.end, context.traceId, context.spanId)
    else if (name.spells(bytes, 'tracestate'))
      context.state = this.states.intern(bytes, value.start, value.end)
  }
}

function statusOf(bytes: Buffer, start: number, end: number): number {
  if (start + version.length + 4 > end || bytes[start + version.length] !== 0x20) return 0
  let status = 0
  for (let at = start + version.length + 1; at < start + version.length + 4; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return 0
    status = status * 10 + digit
  }
  return status
}
