import type { Operation, StreamConnection, StreamDecoder } from './stream.ts'

/**
 * An application protocol. Pure and synchronous, never throws, keeps no reference to what it is given, and allocates
 * nothing per call once its caches are warm.
 */
export interface Protocol {
  /** Also its file, and what the kernel side calls it (`svc_protocol`). */
  readonly name: string
  /** Where only bytes are known: a reader of one connection, which fills the calls of its operations. */
  open(connection: StreamConnection): StreamDecoder
  /**
   * Where there are no bytes to read: fills the call (which the caller cleared) of an operation that the kernel side
   * framed or only counted. Left out: it passes on bytes and nothing else. False: not this protocol, or too few bytes.
   */
  fillCall?(operation: Operation): boolean
}

/** Names the route (a path of few values, `http.route`) that a path belongs to; '' when it has none. */
export type RouteOf = (operation: Operation, path: string) => string

/** What a protocol is given when it is made. */
export interface ProtocolOptions {
  readonly route: RouteOf
  /** Of each HTTP/1 request's head that is kept for its span (`capture_bytes`). Left out: all that there is room for. */
  readonly captureBytes?: number
  /** Replaces the HTTP methods that count as known (OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS). */
  readonly knownMethods?: readonly string[]
}

/**
 * What a protocol is recognised by, the surest first. It is the order in which protocols are looked for; those of the same
 * sign are in the order of their list. `preface`: a text that nothing else begins with. `command`: a word and its syntax.
 * `message`: a length, a type and contents that fit each other. `numbers`: a few small numbers. `port`: the custom of a
 * port, and the bytes do not contradict.
 */
export const confidences = ['preface', 'command', 'message', 'numbers', 'port'] as const
export type Confidence = (typeof confidences)[number]

/** An entry of the list of protocols. */
export interface ProtocolUnit {
  /** Also its file, the kernel side's file below bpf/include/protocol, and part of that one's `opens_<name>`. */
  readonly name: string
  /** As people write it; the key's description is made of it. */
  readonly title: string
  readonly summary: string
  /** The key below `agent.ebpf.network` that switches it. Several may share one. */
  readonly key: string
  /** Undefined: the kernel recognises it as it frames it, behind all others (`http1`). */
  readonly confidence?: Confidence
  /**
   * Above the budget of spans the kernel counts a turn of each side as one call: this protocol answers before it is asked
   * again, as a rule.
   */
  readonly counted?: true
  /** What whoever is asked in it is by that; undefined: that does not tell. */
  readonly peerKind?: 'store' | 'broker' | 'resolver'
  create(options: ProtocolOptions): Protocol
}
