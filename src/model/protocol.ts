import type { Call, Exchange } from './exchange.ts'
import type { StreamConnection, StreamDecoder } from './stream.ts'

/**
 * An application protocol. Pure and synchronous, never throws, keeps no reference to what it is given, and allocates
 * nothing per call once its caches are warm.
 */
export interface Protocol {
  /** Also its file, and what the kernel side calls it (`svc_protocol`). */
  readonly name: string
  /** Where the kernel frames it: fills `call` (which the caller cleared). False: not this protocol, or too few bytes. */
  parse?(exchange: Exchange, call: Call): boolean
  /** Where the kernel only counted: fills `call` with what such calls have in common. */
  count?(exchange: Exchange, call: Call): void
  /** Where only bytes are known: a reader of one connection. */
  open(connection: StreamConnection): StreamDecoder
}

/** Names the route (a path of few values, `http.route`) that a path belongs to; '' when it has none. */
export type RouteOf = (exchange: Exchange, path: string) => string

/** What a protocol is given when it is made. */
export interface ProtocolOptions {
  readonly route: RouteOf
  /** Replaces the HTTP methods that count as known (OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS). */
  readonly knownMethods?: readonly string[]
}

/** An entry of the list of protocols. */
export interface ProtocolUnit {
  readonly name: string
  readonly summary: string
  /** The key below `agent.ebpf.network` that switches it. */
  readonly key: string
  create(options: ProtocolOptions): Protocol
}
