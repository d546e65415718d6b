import type { ProtocolOptions, ProtocolUnit } from '../../src/foundation/model/protocol.ts'
import { Segment } from '../../src/foundation/model/stream.ts'
import { Streams } from '../../src/signals/traces/tracing/streams.ts'

/** What came of one operation. */
export interface SeenOperation {
  readonly name: string
  readonly error: string
  readonly kind: number
  readonly signalType: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly dimensions: Readonly<Record<string, unknown>>
  readonly duration: string | undefined
  /** Milliseconds of the session's clock. */
  readonly startMs: number
  readonly responseMs: number
  readonly endMs: number
  readonly requestBytes: number
  readonly responseBytes: number
  readonly sequence: number
  readonly telemetry: boolean
  /** As `traceparent` would say it; '' where there was none. */
  readonly context: string
  readonly state: string
}

export interface SessionOptions {
  readonly server?: boolean
  readonly joined?: boolean
  readonly tls?: boolean
  readonly serverPort?: number
  readonly options?: Partial<ProtocolOptions>
  /** Bytes that the connection and its requests may hold. */
  readonly maxBytes?: number
}

/**
 * One connection of a protocol, fed with bytes as a capture does it: each call is one socket call, a millisecond after
 * the one before.
 */
export class StreamSession {
  readonly ended: SeenOperation[] = []
  /** Requests that were known before their end. */
  asked = 0
  lost = 0
  refused = false
  /** Most bytes of a call that are captured, and how many of them are the call's last. */
  capture = Number.POSITIVE_INFINITY
  tail = 64
  readonly streams: Streams
  readonly #segmentOf: () => Segment
  #timeMs = 0
  readonly #positions = [0, 0]

  constructor(unit: ProtocolUnit, options: SessionOptions = {}) {
    const protocol = unit.create({ route: (_operation, path) => path, ...options.options })
    this.streams = new Streams(
      [protocol],
      {
        begin: () => {
          this.asked++
        },
        end: operation => {
          const { call, context } = operation
          this.ended.push({
            name: call.name,
            error: call.error,
            kind: call.kind,
            signalType: call.signalType,
            attributes: call.attributes.toObject(),
            dimensions: call.dimensions.toObject(),
            duration: call.duration?.name,
            startMs: operation.startNs / 1e6,
            responseMs: operation.responseNs / 1e6,
            endMs: operation.endNs / 1e6,
            requestBytes: operation.requestBytes,
            responseBytes: operation.responseBytes,
            sequence: operation.sequence,
            telemetry: call.telemetry,
            context:
              context.flags < 0
                ? ''
                : `00-${hex(context.traceId)}-${hex(context.spanId)}-${context.flags.toString(16).padStart(2, '0')}`,
            state: context.state,
          })
        },
        abandon: () => {},
        lost: (_reason, operations) => {
          this.lost += operations
        },
        refuse: () => {
          this.refused = true
        },
      },
      options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes },
    )
    this.#segmentOf = () => {
      const segment = new Segment()
      segment.connection = 1
      segment.protocol = unit.name
      segment.server = options.server ?? false
      segment.joined = options.joined ?? false
      segment.tls = options.tls ?? false
      segment.pid = 100
      segment.tid = 101
      segment.comm = 'session'
      segment.localAddress = '10.0.0.1'
      segment.peerAddress = '10.0.0.2'
      segment.localPort = segment.server ? (options.serverPort ?? 4000) : 50_000
      segment.peerPort = segment.server ? 50_000 : (options.serverPort ?? 4000)
      return segment
    }
  }

  /** Bytes of the client, by one call; text is Latin-1. */
  client(bytes: Buffer | string): this {
    return this.#call(bytes, true)
  }

  /** Bytes of the server, by one call. */
  serverSays(bytes: Buffer | string): this {
    return this.#call(bytes, false)
  }

  /** Bytes that the capture lost. */
  lose(fromClient: boolean, count: number): this {
    this.#positions[fromClient ? 0 : 1]! += count
    return this
  }

  close(errno = 0): this {
    const segment = this.#segmentOf()
    segment.closed = true
    segment.errno = errno
    this.streams.segment(segment)
    this.streams.settle()
    return this
  }

  #call(content: Buffer | string, fromClient: boolean): this {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content
    this.#timeMs++
    const segment = this.#segmentOf()
    const way = fromClient ? 0 : 1
    segment.received = fromClient === segment.server
    segment.timeNs = this.#timeMs * 1e6
    segment.position = this.#positions[way]!
    segment.sequence = (1000 * (way + 1) + this.#positions[way]!) >>> 0
    segment.length = bytes.length
    this.#positions[way]! += bytes.length
    if (bytes.length <= this.capture) {
      segment.bytes = bytes
      segment.end = bytes.length
    } else {
      segment.tail = Math.min(this.tail, this.capture)
      const head = bytes.subarray(0, this.capture - segment.tail)
      segment.bytes = Buffer.concat([head, bytes.subarray(bytes.length - segment.tail)])
      segment.end = segment.bytes.length
    }
    this.streams.segment(segment)
    this.streams.settle()
    return this
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
