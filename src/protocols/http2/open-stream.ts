import type { Operation } from '../../model/stream.ts'
import type { KeptHead } from '../http1/kept-heads.ts'
import { Said } from './fields.ts'

/** A request of HTTP/2 whose response is not whole yet. Used again. */
export class OpenStream {
  id = 0
  operation!: Operation
  head!: KeptHead
  hasPath = false
  https = false
  grpc: Said = Said.no
  /** Whether the request's first bytes are those of a gRPC message. */
  prefixed: Said = Said.unknown
  /** `grpc-status`; -1: none came; -2: it came, and cannot be known. */
  grpcStatus = -1
  /** Nanoseconds, 0 for none. */
  timeoutNs = 0
  requestBody = 0
  responseBody = 0
  /** The head of the final response was there. */
  answered = false
  /** Nanoseconds: since then it may have ended unseen. 0: it has not. */
  doubtNs = 0
}

/** Streams that are open, by number. Grows with them; a client's numbers are odd and rise. */
export class StreamTable {
  size = 0
  private slots: (OpenStream | undefined)[] = []

  /** Bytes of the table, without the streams. */
  get bytes(): number {
    return this.slots.length * 8
  }

  get(id: number): OpenStream | undefined {
    const { slots } = this
    const mask = slots.length - 1
    for (let at = (id >> 1) & mask; this.size > 0; at = (at + 1) & mask) {
      const stream = slots[at]
      if (stream === undefined || stream.id === id) return stream
    }
    return undefined
  }

  /** Adds a stream whose number is not there yet. */
  add(stream: OpenStream): void {
    if (this.size * 2 >= this.slots.length) this.resize(Math.max(8, this.slots.length * 2))
    this.place(stream)
    this.size++
  }

  /** False: there is no such stream. */
  delete(id: number): boolean {
    const { slots } = this
    const mask = slots.length - 1
    let hole = (id >> 1) & mask
    while (slots[hole]?.id !== id) {
      if (slots[hole] === undefined) return false
      hole = (hole + 1) & mask
    }
    slots[hole] = undefined
    this.size--
    // Those behind it that were pushed away from their place come nearer.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const stream = slots[at]
      if (stream === undefined) break
      const home = (stream.id >> 1) & mask
      if (((at - home) & mask) < ((at - hole) & mask)) continue
      slots[hole] = stream
      slots[at] = undefined
      hole = at
    }
    if (this.size === 0 && slots.length > 256) this.slots = []
    return true
  }

  /** The first `most` streams that `wanted` says yes to, by number. Makes a list: not for each message. */
  select(wanted: (stream: OpenStream) => boolean, most = Number.POSITIVE_INFINITY): OpenStream[] {
    return this.slots
      .filter((stream): stream is OpenStream => stream !== undefined && wanted(stream))
      .sort((a, b) => a.id - b.id)
      .slice(0, most)
  }

  private place(stream: OpenStream): void {
    const mask = this.slots.length - 1
    let at = (stream.id >> 1) & mask
    while (this.slots[at] !== undefined) at = (at + 1) & mask
    this.slots[at] = stream
  }

  private resize(length: number): void {
    const old = this.slots
    this.slots = new Array<OpenStream | undefined>(length).fill(undefined)
    for (const stream of old) if (stream !== undefined) this.place(stream)
  }
}
