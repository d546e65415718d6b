// The connections of one listener: their limit, the choice of one to close when full, and the requests in progress on
// each.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Memory for requests that wait behind an answer on the same connection; clients that do not pipeline need none. */
const mostQueuedBytes = 64 * 1024
/** Memory of a waiting request, besides the body of its answer. */
export const requestBytes = 4096

/** A request that is being answered. */
export interface OpenRequest {
  /** The client has gone. */
  gone(): void
  /** The connection must end soon: a followed document ends now. */
  leave?(): void
}

export class Connection {
  readonly socket: Socket
  /** Increases with every connection and request: the lowest has waited longest. */
  lastUse: number
  /** Close after the next answer. */
  leaving = false
  /** Its last answer was made: later requests are not answered. */
  ended = false
  /** Requests that wait for their turn to be answered. */
  waiting = 0
  /** As in `Peer`. */
  user: number | undefined
  #queuedBytes = 0
  readonly #late = new Set<OpenRequest>()

  constructor(socket: Socket, lastUse: number) {
    this.socket = socket
    this.lastUse = lastUse
    this.user = undefined
  }

  /** Whether an answer is being made or written. */
  get busy(): boolean {
    return this.working || this.socket.writableLength > 0
  }

  get working(): boolean {
    return this.#late.size > 0
  }

  /** Whether an answer is being made. */
  get making(): boolean {
    return this.#late.size > this.waiting
  }

  /** Whether too much is waiting to accept another request. */
  get full(): boolean {
    return this.#queuedBytes > mostQueuedBytes
  }

  /** Bytes waiting for the client or for their turn. */
  get bytes(): number {
    return this.#queuedBytes + this.socket.writableLength
  }

  /** Counts waiting bytes, of an answer or of a request that has none yet. */
  queue(response: ServerResponse, bytes: number): void {
    this.#queuedBytes += bytes
    response.once('close', () => {
      this.#queuedBytes -= bytes
    })
  }

  begin(late: OpenRequest): void {
    this.#late.add(late)
  }

  end(late: OpenRequest): void {
    this.#late.delete(late)
  }

  leave(): void {
    this.leaving = true
    for (const late of [...this.#late]) late.leave?.()
  }

  closed(): void {
    for (const late of [...this.#late]) late.gone()
    this.#late.clear()
  }
}

/**
 * A bounded set of connections. When full, it closes the one that has waited longest for its client (idle, or sending
 * an endless request; if there is none, not reading its answer), so that neither kept-alive nor slow connections lock
 * out a new client.
 */
export class Connections {
  readonly #most: number
  readonly #open = new Map<Duplex, Connection>()
  #uses = 0
  #dropped = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#open.size
  }

  /** Waiting bytes of all connections. Summed on demand: there are few. */
  get bytes(): number {
    let sum = 0
    for (const connection of this.#open.values()) sum += connection.bytes
    return sum
  }

  /** Connections closed because the limit was reached. */
  get dropped(): number {
    return this.#dropped
  }

  /** Adds a new connection, or closes it if all others are busy. */
  admit(socket: Socket): void {
    if (this.#open.size >= this.#most && !this.#makeRoom()) {
      this.#dropped++
      socket.destroy()
      return
    }
    this.#add(socket)
  }

  /** A connection continues as another socket, TLS on top of TCP. */
  replace(from: Socket, to: Socket): void {
    // Absent if it was closed during its handshake to make room.
    if (this.#open.delete(from)) this.#add(to)
    else to.destroy()
  }

  /** The connection of a socket; undefined if it was closed. */
  of(socket: Duplex): Connection | undefined {
    return this.#open.get(socket)
  }

  /** A request has arrived. */
  used(connection: Connection): void {
    connection.lastUse = ++this.#uses
  }

  /** Ends all of them as soon as possible: idle ones at once, the others after their next answer. */
  leave(): void {
    for (const connection of this.#open.values()) {
      connection.leave()
      if (!connection.busy) connection.socket.destroy()
    }
  }

  /** Each connection ends after its next answer, and followed documents end now. */
  finish(): void {
    for (const connection of this.#open.values()) connection.leave()
  }

  destroyAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy()
  }

  #add(socket: Socket): void {
    const connection = new Connection(socket, ++this.#uses)
    this.#open.set(socket, connection)
    socket.once('close', () => {
      this.#open.delete(socket)
      connection.closed()
    })
  }

  #makeRoom(): boolean {
    const longest = this.#longest(({ busy }) => !busy) ?? this.#longest(({ making }) => !making)
    if (longest === undefined) return false
    this.#dropped++
    // Its 'close' comes later, and the place is needed now.
    this.#open.delete(longest.socket)
    longest.socket.destroy()
    return true
  }

  #longest(may: (connection: Connection) => boolean): Connection | undefined {
    let longest: Connection | undefined
    for (const connection of this.#open.values())
      if (may(connection) && connection.lastUse < (longest?.lastUse ?? Number.POSITIVE_INFINITY))
        longest = connection
    return longest
  }
}
