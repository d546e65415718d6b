import { svcMethod, svcProtocol, svcRecord, svcRedKey, svcSegment, svcSide } from '../kernel/gen/sock.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import { Interner } from '../lib/interner.ts'
import { ipText } from '../lib/ip-text.ts'
import { small } from '../lib/small-tables.ts'
import type { Exchange } from '../model/exchange.ts'
import { requestAt, requestNumber } from '../model/request-number.ts'
import type { Segment } from '../model/stream.ts'

const server = svcSide.indexOf('server')
const twoTo32 = 4294967296
/** Of version 00 (W3C Trace Context, 3.2.2). */
const traceparentLength = 55
const space = 0x20
const noBytes = Buffer.alloc(0)

/** Bits of `svc_segment.flags` (bpf/include/layout.h, SVC_SEGMENT_...). */
const flag = { received: 1, joined: 2, closed: 4, tls: 8, blocking: 16, server: 32 }

/** Reads `svc_record` and `svc_red_key` (bpf/include/layout.h) into an exchange. Allocates nothing once it is warm. */
export class RecordReader {
  private readonly words = small(new Interner({ slots: 1024, maxLength: 64 }))
  private readonly addresses = small(new BoundedMap<string, string>(4096))
  /** Request heads that stand for what was only counted, by method and minor version. */
  private readonly heads = new Map<number, Buffer>()
  /** Microseconds between the kernel's monotonic clock and the Unix epoch. */
  private offsetUs = 0

  /** Tells the clocks at one moment; to be called now and then, as the wall clock is adjusted. */
  setClock(monotonicNs: number, realtimeUs: number): void {
    this.offsetUs = realtimeUs - monotonicNs / 1000
  }

  /**
   * Reads the record at byte `at` of `bytes` (a multiple of 8). `words32` and `words16` are views of the same memory
   * from its first byte.
   */
  record(exchange: Exchange, bytes: Buffer, words32: Uint32Array, words16: Uint16Array, at: number): void {
    const w = at >>> 2
    const h = at >>> 1
    const startNs =
      words32[w + (svcRecord.startNs >> 2)]! + words32[w + (svcRecord.startNs >> 2) + 1]! * twoTo32
    const responseNs =
      words32[w + (svcRecord.responseNs >> 2)]! + words32[w + (svcRecord.responseNs >> 2) + 1]! * twoTo32
    const endNs = words32[w + (svcRecord.endNs >> 2)]! + words32[w + (svcRecord.endNs >> 2) + 1]! * twoTo32
    const requestHead = words32[w + (svcRecord.requestHead >> 2)]!
    const responseHead = words32[w + (svcRecord.responseHead >> 2)]!
    const captured = words16[h + (svcRecord.captured >> 1)]!
    exchange.bytes = bytes
    exchange.requestStart = at + svcRecord.size
    exchange.requestEnd = exchange.requestStart + captured
    exchange.responseStart = exchange.requestEnd
    exchange.responseEnd = exchange.requestEnd
    exchange.protocol = 'http1'
    exchange.server = bytes[at + svcRecord.side] === server
    exchange.pid = words32[w + (svcRecord.pid >> 2)]!
    exchange.tid = words32[w + (svcRecord.tid >> 2)]!
    exchange.blocking = bytes[at + svcRecord.blocking] !== 0
    exchange.moreContext = bytes[at + svcRecord.moreContext] !== 0
    exchange.doubt = bytes[at + svcRecord.doubt] !== 0
    exchange.comm = this.text(bytes, at + svcRecord.comm, svcRecord.commSize)
    exchange.cgroup =
      words32[w + (svcRecord.cgroup >> 2)]! + words32[w + (svcRecord.cgroup >> 2) + 1]! * twoTo32
    exchange.localAddress = this.address(bytes, at + svcRecord.localAddress)
    exchange.peerAddress = this.address(bytes, at + svcRecord.peerAddress)
    exchange.localPort = words16[h + (svcRecord.localPort >> 1)]!
    exchange.peerPort = words16[h + (svcRecord.peerPort >> 1)]!
    exchange.status = words16[h + (svcRecord.status >> 1)]!
    exchange.errno = words16[h + (svcRecord.error >> 1)]!
    exchange.aborted = bytes[at + svcRecord.aborted] !== 0
    exchange.startUs = startNs / 1000 + this.offsetUs
    exchange.responseUs = responseNs === 0 ? 0 : responseNs / 1000 + this.offsetUs
    exchange.endUs = endNs / 1000 + this.offsetUs
    exchange.durationNs = endNs - startNs
    exchange.requestBytes =
      words32[w + (svcRecord.requestBytes >> 2)]! + words32[w + (svcRecord.requestBytes >> 2) + 1]! * twoTo32
    exchange.responseBytes =
      words32[w + (svcRecord.responseBytes >> 2)]! +
      words32[w + (svcRecord.responseBytes >> 2) + 1]! * twoTo32
    exchange.requestBodyBytes = Math.max(0, exchange.requestBytes - requestHead)
    exchange.responseBodyBytes = Math.max(0, exchange.responseBytes - responseHead)
    exchange.sequence = words32[w + (svcRecord.sequence >> 2)]!
    exchange.request = exchange.server ? requestNumber(exchange.tid, startNs) : 0
    exchange.sampled = bytes[at + svcRecord.sampled] !== 0
    exchange.traceparentStart = at + svcRecord.traceparent
    exchange.traceparentEnd = exchange.traceparentStart
    if (bytes[at + svcRecord.hasTraceparent] !== 0) {
      // The byte behind the value's 55 is the line's end, or what tells a longer value.
      const longer = bytes[exchange.traceparentStart + traceparentLength]! > space
      exchange.traceparentEnd += traceparentLength + (longer ? 1 : 0)
    }
  }

  /** Reads the `svc_segment` at byte `at`, whose captured bytes follow it. */
  segment(segment: Segment, bytes: Buffer, words32: Uint32Array, words16: Uint16Array, at: number): void {
    const w = at >>> 2
    const h = at >>> 1
    const flags = bytes[at + svcSegment.flags]!
    segment.bytes = bytes
    segment.start = at + svcSegment.size
    segment.end = segment.start + words16[h + (svcSegment.captured >> 1)]!
    segment.length = words32[w + (svcSegment.length >> 2)]!
    segment.tail = words16[h + (svcSegment.tail >> 1)]!
    segment.connection =
      words32[w + (svcSegment.connection >> 2)]! + words32[w + (svcSegment.connection >> 2) + 1]! * twoTo32
    segment.protocol = svcProtocol[bytes[at + svcSegment.protocol]!] ?? ''
    segment.received = (flags & flag.received) !== 0
    segment.joined = (flags & flag.joined) !== 0
    segment.closed = (flags & flag.closed) !== 0
    segment.tls = (flags & flag.tls) !== 0
    segment.blocking = (flags & flag.blocking) !== 0
    segment.server = (flags & flag.server) !== 0
    segment.errno = words16[h + (svcSegment.error >> 1)]!
    segment.timeNs =
      words32[w + (svcSegment.timeNs >> 2)]! + words32[w + (svcSegment.timeNs >> 2) + 1]! * twoTo32
    segment.position = words32[w + (svcSegment.position >> 2)]!
    segment.sequence = words32[w + (svcSegment.sequence >> 2)]!
    segment.pid = words32[w + (svcSegment.pid >> 2)]!
    segment.tid = words32[w + (svcSegment.tid >> 2)]!
    segment.served = requestAt(segment.tid, words32[w + (svcSegment.served >> 2)]!)
    segment.comm = this.text(bytes, at + svcSegment.comm, svcSegment.commSize)
    segment.cgroup =
      words32[w + (svcSegment.cgroup >> 2)]! + words32[w + (svcSegment.cgroup >> 2) + 1]! * twoTo32
    segment.localAddress = this.address(bytes, at + svcSegment.localAddress)
    segment.peerAddress = this.address(bytes, at + svcSegment.peerAddress)
    segment.localPort = words16[h + (svcSegment.localPort >> 1)]!
    segment.peerPort = words16[h + (svcSegment.peerPort >> 1)]!
  }

  /** Microseconds since the Unix epoch of a time of the monotonic clock. */
  microseconds(timeNs: number): number {
    return timeNs / 1000 + this.offsetUs
  }

  /** Reads a key of `red`: the exchange gets what its requests had in common, and zero for all that they had not. */
  counted(exchange: Exchange, key: Buffer): void {
    const protocol = svcProtocol[key[svcRedKey.protocol]!] ?? ''
    const head = protocol === 'http1' ? this.headOf(key[svcRedKey.method]!, key[svcRedKey.minor]!) : noBytes
    const isServer = key[svcRedKey.side] === server
    const port = key.readUInt16LE(svcRedKey.port)
    exchange.bytes = head
    exchange.requestStart = 0
    exchange.requestEnd = head.length
    exchange.responseStart = head.length
    exchange.responseEnd = head.length
    exchange.protocol = protocol
    exchange.server = isServer
    exchange.pid = key.readUInt32LE(svcRedKey.pid)
    exchange.tid = 0
    exchange.blocking = false
    exchange.moreContext = false
    exchange.doubt = false
    exchange.comm = this.text(key, svcRedKey.comm, svcRedKey.commSize)
    exchange.cgroup = 0
    exchange.localAddress = ''
    exchange.peerAddress = isServer ? '' : this.address(key, svcRedKey.peerAddress)
    exchange.localPort = isServer ? port : 0
    exchange.peerPort = isServer ? 0 : port
    exchange.status = key.readUInt16LE(svcRedKey.status)
    exchange.errno = key.readUInt16LE(svcRedKey.error)
    exchange.aborted = key[svcRedKey.aborted] !== 0
    exchange.startUs = 0
    exchange.responseUs = 0
    exchange.endUs = 0
    exchange.durationNs = 0
    exchange.requestBytes = 0
    exchange.responseBytes = 0
    exchange.requestBodyBytes = 0
    exchange.responseBodyBytes = 0
    exchange.sequence = 0
    exchange.request = 0
    exchange.sampled = false
    exchange.traceparentStart = 0
    exchange.traceparentEnd = 0
  }

  private headOf(method: number, minor: number): Buffer {
    const id = method * 256 + minor
    let head = this.heads.get(id)
    if (head === undefined) {
      head = Buffer.from(`${(svcMethod[method] ?? 'other').toUpperCase()} * HTTP/1.${minor}\r\n\r\n`)
      this.heads.set(id, head)
    }
    return head
  }

  private text(bytes: Buffer, from: number, size: number): string {
    let end = from
    while (end < from + size && bytes[end] !== 0) end++
    return this.words.intern(bytes, from, end)
  }

  private address(bytes: Buffer, at: number): string {
    const raw = this.words.intern(bytes, at, at + 16)
    let text = this.addresses.get(raw)
    if (text === undefined) {
      text = ipText(bytes.subarray(at, at + 16))
      this.addresses.set(raw, text)
    }
    return text
  }
}
