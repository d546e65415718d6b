/**
 * One side of a connection: its ends and the process that has it. Filled again or changed by the next bytes, so nothing
 * of it may be kept.
 */
export class Connection {
  /** Names it on this host for as long as it is there (socket cookie); 0 where the kernel side frames it. */
  id = 0
  /** Name of the protocol that the kernel side recognised. */
  protocol = ''
  /** The kernel side does not frame it: its operations are found in its bytes. */
  fromBytes = false
  /** This side is the server. */
  server = false
  tls = false
  /** The process of the newest bytes: the thread group id in the initial pid namespace. */
  pid = 0
  /** Its executable's short name (at most 15 bytes), for processes that are gone before /proc is read. */
  comm = ''
  /** Addresses as text without brackets, ports in host order. "local" is this side's end. */
  localAddress = ''
  localPort = 0
  peerAddress = ''
  peerPort = 0
  /** Of late, requests began that were not reported: the requests that its process serves are not all known. */
  doubt = false

  /** Of the end that serves, whichever side that is. */
  get serverAddress(): string {
    return this.server ? this.localAddress : this.peerAddress
  }

  get serverPort(): number {
    return this.server ? this.localPort : this.peerPort
  }

  get clientAddress(): string {
    return this.server ? this.peerAddress : this.localAddress
  }

  get clientPort(): number {
    return this.server ? this.peerPort : this.localPort
  }
}

/** The captured beginning of a request that the kernel side framed. */
export class CapturedHead {
  /** The request's head is `bytes[start, end)`. Valid only during the call that it is passed to. */
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0
  /** The value of a `traceparent` header that the kernel found, as a range of `bytes`; empty when there was none. */
  traceparentStart = 0
  traceparentEnd = 0
  /** The head has further lines of its place in a trace: a `tracestate`, or Zipkin's B3. */
  moreContext = false
}
