import { CapturedHead, Connection } from '../../foundation/model/connection.ts'
import { requestAt } from '../../foundation/model/request-number.ts'
import { Operation, type Segment } from '../../foundation/model/stream.ts'
import { svcMethod, svcProtocol, svcRecord, svcRedKey, svcSegment, svcSide } from '../../kernel/gen/sock.ts'
import { RecordTexts } from './record-texts.ts'

const server = svcSide.indexOf('server')
const twoTo32 = 4294967296
/** Length in version 00 (W3C Trace Context, section 3.2.2). */
const traceparentLength = 55
const space = 0x20
const noBytes = Buffer.alloc(0)

/** Bits of `svc_segment.flags` (bpf/include/layout.h, SVC_SEGMENT_...). */
const flag = { received: 1, joined: 2, closed: 4, tls: 8, blocking: 16, server: 32, missed: 64 }

/**
 * Converts `svc_record` and `svc_red_key` (bpf/include/layout.h) to operations, and `svc_segment` to segments. Does not
 * allocate after warm-up.
 */
export class RecordReader {
  readonly #texts = new RecordTexts()
  /** Request heads of counted operations, by method and minor version. */
  readonly #heads = new Map<number, Buffer>()
  /** Reused for each record and key. */
  readonly #operation = new Operation(new Connection(), new CapturedHead())
  readonly #common = new Operation(new Connection(), new CapturedHead())

  /**
   * Reads the record at byte `at` of `bytes` (a multiple of 8). `words32` and `words16` are views of the same memory
   * from its first byte. The operation is valid until the next one.
   */
  record(bytes: Buffer, words32: Uint32Array, words16: Uint16Array, at: number): Operation {
    const operation = this.#operation
    const w = at >>> 2
    const h = at >>> 1
    const requestHead = words32[w + (svcRecord.requestHead >> 2)]!
    const responseHead = words32[w + (svcRecord.responseHead >> 2)]!
    const { connection, head } = operation
    connection.protocol = 'http1'
    connection.server = bytes[at + svcRecord.side] === server
    connection.pid = words32[w + (svcRecord.pid >> 2)]!
    connection.comm = this.#texts.text(bytes, at + svcRecord.comm, svcRecord.commSize)
    connection.localAddress = this.#texts.address(bytes, at + svcRecord.localAddress)
    connection.peerAddress = this.#texts.address(bytes, at + svcRecord.peerAddress)
    connection.localPort = words16[h + (svcRecord.localPort >> 1)]!
    connection.peerPort = words16[h + (svcRecord.peerPort >> 1)]!
    connection.doubt = bytes[at + svcRecord.doubt] !== 0
    operation.startNs =
      words32[w + (svcRecord.startNs >> 2)]! + words32[w + (svcRecord.startNs >> 2) + 1]! * twoTo32
    operation.responseNs =
      words32[w + (svcRecord.responseNs >> 2)]! + words32[w + (svcRecord.responseNs >> 2) + 1]! * twoTo32
    operation.endNs =
      words32[w + (svcRecord.endNs >> 2)]! + words32[w + (svcRecord.endNs >> 2) + 1]! * twoTo32
    operation.requestBytes =
      words32[w + (svcRecord.requestBytes >> 2)]! + words32[w + (svcRecord.requestBytes >> 2) + 1]! * twoTo32
    operation.responseBytes =
      words32[w + (svcRecord.responseBytes >> 2)]! +
      words32[w + (svcRecord.responseBytes >> 2) + 1]! * twoTo32
    operation.requestBodyBytes = Math.max(0, operation.requestBytes - requestHead)
    operation.responseBodyBytes = Math.max(0, operation.responseBytes - responseHead)
    operation.status = words16[h + (svcRecord.status >> 1)]!
    operation.aborted = bytes[at + svcRecord.aborted] !== 0
    operation.errno = words16[h + (svcRecord.error >> 1)]!
    operation.sequence = words32[w + (svcRecord.sequence >> 2)]!
    operation.tid = words32[w + (svcRecord.tid >> 2)]!
    operation.blocking = bytes[at + svcRecord.blocking] !== 0
    operation.sampled = bytes[at + svcRecord.sampled] !== 0
    head.bytes = bytes
    head.start = at + svcRecord.size
    head.end = head.start + words16[h + (svcRecord.captured >> 1)]!
    head.moreContext = bytes[at + svcRecord.moreContext] !== 0
    head.traceparentStart = at + svcRecord.traceparent
    head.traceparentEnd = head.traceparentStart
    if (bytes[at + svcRecord.hasTraceparent] !== 0) {
      // The byte after the 55 of the value ends the line, or belongs to a longer value.
      const longer = bytes[head.traceparentStart + traceparentLength]! > space
      head.traceparentEnd += traceparentLength + (longer ? 1 : 0)
    }
    return operation
  }

  /** Reads the `svc_segment` at byte `at`, which is followed by its captured bytes. */
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
    segment.missed = (flags & flag.missed) !== 0
    segment.errno = words16[h + (svcSegment.error >> 1)]!
    segment.timeNs =
      words32[w + (svcSegment.timeNs >> 2)]! + words32[w + (svcSegment.timeNs >> 2) + 1]! * twoTo32
    segment.position = words32[w + (svcSegment.position >> 2)]!
    segment.sequence = words32[w + (svcSegment.sequence >> 2)]!
    segment.pid = words32[w + (svcSegment.pid >> 2)]!
    segment.tid = words32[w + (svcSegment.tid >> 2)]!
    segment.served = requestAt(segment.tid, words32[w + (svcSegment.served >> 2)]!)
    segment.comm = this.#texts.text(bytes, at + svcSegment.comm, svcSegment.commSize)
    segment.cgroup =
      words32[w + (svcSegment.cgroup >> 2)]! + words32[w + (svcSegment.cgroup >> 2) + 1]! * twoTo32
    segment.localAddress = this.#texts.address(bytes, at + svcSegment.localAddress)
    segment.peerAddress = this.#texts.address(bytes, at + svcSegment.peerAddress)
    segment.localPort = words16[h + (svcSegment.localPort >> 1)]!
    segment.peerPort = words16[h + (svcSegment.peerPort >> 1)]!
  }

  /**
   * Reads a key of `red` as an operation with the common fields of the counted operations; all others are zero. Valid
   * until the next one.
   */
  counted(key: Buffer): Operation {
    const operation = this.#common
    const { connection, head } = operation
    const isServer = key[svcRedKey.side] === server
    const port = key.readUInt16LE(svcRedKey.port)
    connection.protocol = svcProtocol[key[svcRedKey.protocol]!] ?? ''
    connection.server = isServer
    connection.pid = key.readUInt32LE(svcRedKey.pid)
    connection.comm = this.#texts.text(key, svcRedKey.comm, svcRedKey.commSize)
    connection.peerAddress = isServer ? '' : this.#texts.address(key, svcRedKey.peerAddress)
    connection.localPort = isServer ? port : 0
    connection.peerPort = isServer ? 0 : port
    operation.status = key.readUInt16LE(svcRedKey.status)
    operation.aborted = key[svcRedKey.aborted] !== 0
    operation.errno = key.readUInt16LE(svcRedKey.error)
    head.bytes =
      connection.protocol === 'http1' ? this.#headOf(key[svcRedKey.method]!, key[svcRedKey.minor]!) : noBytes
    head.end = head.bytes.length
    return operation
  }

  #headOf(method: number, minor: number): Buffer {
    const id = method * 256 + minor
    let head = this.#heads.get(id)
    if (head === undefined) {
      head = Buffer.from(`${(svcMethod[method] ?? 'other').toUpperCase()} * HTTP/1.${minor}\r\n\r\n`)
      this.#heads.set(id, head)
    }
    return head
  }
}
