/** The reader of a flow. Never throws. */
export interface FlowReader {
  /**
   * Reads whole messages in `flow.bytes[flow.at, flow.end)` and moves `at` past each. Bytes that it leaves are passed
   * again, with more after them. `flow.skip` skips bytes that are not needed, even those still to come.
   */
  read(flow: ByteFlow): void
  /**
   * Bytes are missing, or more were left than can be kept: the next ones may be anywhere in a message. `flow.broken` is
   * true until the reader clears it.
   */
  lost(flow: ByteFlow): void
}

/** Bytes that may be left unread between two pieces. */
export const maxLeft = 16_384
/** Maximum bytes of a piece; longer ones are split. */
const maxPiece = 32_768

/** Leftover and new bytes, contiguous. Shared by all flows, since they are read one after the other. */
const joint = Buffer.alloc(maxLeft + maxPiece)
const nothing = Buffer.alloc(0)

/** One direction of a connection, whose bytes arrive in pieces, with possible gaps. */
export class ByteFlow {
  /** True: from the client to the server. */
  readonly request: boolean
  /** The available bytes are `bytes[at, end)`. Valid only while the reader runs. */
  bytes: Buffer = nothing
  at = 0
  end = 0
  /** Framing is lost; set by the flow, cleared by its reader. */
  broken = false
  /** Time of the call with the newest bytes, in nanoseconds. */
  nowNs = 0
  /** Bytes received so far, including those that were not captured. */
  received = 0
  readonly #reader: FlowReader
  #left: Buffer = nothing
  #leftLength = 0
  #leftNs = 0
  /** Leading bytes of `bytes` that are left over from earlier pieces. */
  #old = 0
  #skipping = 0
  #sequenceOfEnd = 0
  #offsetOfEnd = 0

  constructor(request: boolean, reader: FlowReader) {
    this.request = request
    this.#reader = reader
  }

  /** Memory of the leftover bytes. */
  get kept(): number {
    return this.#left.length
  }

  /** Time of the call with the byte at `at`, in nanoseconds. */
  get startNs(): number {
    return this.at < this.#old ? this.#leftNs : this.nowNs
  }

  /** True at the first byte of a call, where a message most likely begins. */
  get atCall(): boolean {
    return this.at === this.#old
  }

  /** TCP sequence number of the byte at `at`. */
  get sequence(): number {
    return (this.#sequenceOfEnd - (this.end - this.at)) >>> 0
  }

  /** Offset of `at` in the flow. */
  get offset(): number {
    return this.#offsetOfEnd - (this.end - this.at)
  }

  /** No room for more unread bytes: the reader must consume these, or they are lost. */
  get full(): boolean {
    return this.end - this.at >= maxLeft
  }

  /** Skips `count` bytes from `at`. */
  skip(count: number): void {
    const here = Math.min(count, this.end - this.at)
    this.at += here
    this.#skipping += count - here
  }

  /** Passes the next piece of a call. `sequence` is the TCP sequence number of its first byte. */
  feed(bytes: Buffer, start: number, end: number, timeNs: number, sequence: number): void {
    this.nowNs = timeNs
    for (let from = start; from < end; ) {
      const to = Math.min(end, from + maxPiece)
      this.received += to - from
      this.#piece(bytes, from, to, (sequence + (to - start)) >>> 0)
      from = to
    }
  }

  /** Reports `count` bytes that were not captured. */
  gap(count: number): void {
    this.received += count
    if (this.#skipping >= count) {
      this.#skipping -= count
      return
    }
    this.#leftLength = 0
    this.#skipping = 0
    this.#lose()
  }

  #piece(bytes: Buffer, start: number, end: number, sequenceOfEnd: number): void {
    const skipped = Math.min(this.#skipping, end - start)
    this.#skipping -= skipped
    const from = start + skipped
    if (from === end) return
    this.#sequenceOfEnd = sequenceOfEnd
    this.#offsetOfEnd = this.received
    if (this.#leftLength === 0) {
      this.bytes = bytes
      this.at = from
      this.end = end
      this.#old = from
    } else {
      this.#left.copy(joint, 0, 0, this.#leftLength)
      bytes.copy(joint, this.#leftLength, from, end)
      this.bytes = joint
      this.at = 0
      this.#old = this.#leftLength
      this.end = this.#leftLength + end - from
    }
    this.#reader.read(this)
    this.#keep()
  }

  #keep(): void {
    const length = this.end - this.at
    if (length > maxLeft) {
      this.#leftLength = 0
      this.#lose()
    } else {
      if (length > 0) {
        this.#leftNs = this.startNs
        if (this.#left.length < length)
          this.#left = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(Math.max(64, length))))
        this.bytes.copy(this.#left, 0, this.at, this.end)
      } else if (this.#left.length > 1024) {
        this.#left = nothing
      }
      this.#leftLength = length
    }
    this.bytes = nothing
    this.at = 0
    this.end = 0
    this.#old = 0
  }

  #lose(): void {
    this.broken = true
    this.#reader.lost(this)
  }
}
