import type { Operation, StreamConnection, StreamDecoder } from './stream.ts'

/**
 * An application protocol. Pure and synchronous; never throws, keeps no reference to its arguments, and allocates
 * nothing per call once its caches are warm.
 */
export interface Protocol {
  /** Also the name of its file, and of its `svc_protocol` on the kernel side. */
  readonly name: string
  /** For connections captured as bytes: a decoder of one connection, which fills the calls of its operations. */
  open(connection: StreamConnection): StreamDecoder
  /**
   * For operations that the kernel side framed or only counted: fills the call, which the caller cleared. Undefined:
   * the protocol is captured only as bytes. False: not this protocol, or too few bytes.
   */
  fillCall?(operation: Operation): boolean
}

/** The route (`http.route`, a path with few distinct values) of a path; '' if it has none. */
export type RouteOf = (operation: Operation, path: string) => string

/** Options for creating a protocol. */
export interface ProtocolOptions {
  readonly route: RouteOf
  /** Bytes kept of each HTTP/1 request head for its span (`capture_bytes`). Undefined: as many as there is room for. */
  readonly captureBytes?: number
  /** Replaces the HTTP methods that count as known (OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS). */
  readonly knownMethods?: readonly string[]
}

/**
 * How a protocol is detected, most reliable first. Protocols are tried in this order; those with the same sign in the
 * order of their list. `preface`: a text that no other protocol begins with. `command`: a word and its syntax.
 * `message`: a length, a type and contents that are consistent. `numbers`: a few small numbers. `port`: a well-known
 * port, and bytes that do not contradict it.
 */
export const confidences = ['preface', 'command', 'message', 'numbers', 'port'] as const
export type Confidence = (typeof confidences)[number]

/** An entry of the list of protocols. */
export interface ProtocolUnit {
  /**
   * Also the name of its file, of the kernel side's file below bpf/include/protocol, and the suffix of its
   * `opens_<name>`.
   */
  readonly name: string
  /** Display name, used in the key's description. */
  readonly title: string
  readonly summary: string
  /** The key below `agent.ebpf.network` that enables it. Several protocols may share one. */
  readonly key: string
  /** Undefined: the kernel detects it while framing it, after all others (`http1`). */
  readonly confidence?: Confidence
  /**
   * Above the span budget the kernel counts one turn of each side as one call: this protocol normally responds before
   * the next request.
   */
  readonly counted?: true
  /** Kind of the peer; undefined if the protocol does not reveal it. */
  readonly peerKind?: 'store' | 'broker' | 'resolver'
  create(options: ProtocolOptions): Protocol
}
