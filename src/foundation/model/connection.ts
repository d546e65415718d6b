/**
 * One side of a connection: its addresses and its process. The next bytes change or refill the instance: do not keep
 * it.
 */
export class Connection {
  /** Identifies it on this host while it exists (socket cookie); 0 if the kernel side frames it. */
  id = 0
  /** Name of the protocol that the kernel side recognised. */
  protocol = ''
  /** The kernel side does not frame it: its operations are decoded from its bytes. */
  fromBytes = false
  /** This side is the server. */
  server = false
  tls = false
  /** The process of the newest bytes: the thread group id in the initial pid namespace. */
  pid = 0
  /** The executable's short name (at most 15 bytes), for processes that exit before /proc is read. */
  comm = ''
  /** Addresses as text without brackets, ports in host order. "local" is this side's end. */
  localAddress = ''
  localPort = 0
  peerAddress = ''
  peerPort = 0
  /** Recently, requests began that were not reported: the requests that its process serves are not all known. */
  doubt = false

  /** The server's end, whether local or remote. */
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
  /** The request's head is `bytes[start, end)`. Valid only during the call that receives it. */
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0
  /** The value of the `traceparent` header that the kernel found, as a range of `bytes`; empty if there was none. */
  traceparentStart = 0
  traceparentEnd = 0
  /** The head has further trace headers: a `tracestate`, or Zipkin's B3. */
  moreContext = false
}
