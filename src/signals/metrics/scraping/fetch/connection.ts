import type { LookupFunction, OnReadOpts, Socket } from 'node:net'
import { Dialer, type DialerOptions, faultText } from '../../../../foundation/lib/dialer.ts'
import {
  type AnswerFault,
  type AnswerLimits,
  AnswerReader,
  foreignText,
  sharedRoom,
} from './answer-reader.ts'
import type { PageBuffers } from './page-buffers.ts'
import { isNearAddress, isOwnAddress } from './target-place.ts'

export type ConnectionOptions = Omit<DialerOptions, 'onread'> & { readonly lookup: LookupFunction }

/** Idle time before TCP keep-alive probes, in milliseconds: firewalls forget silent connections. */
const keepAliveMs = 30_000

/** A connection attempt. */
export interface Dialing {
  /** Rejects with a `ConnectError`. */
  readonly done: Promise<Connection>
  /** Aborts the attempt. */
  stop(): void
}

/** One request and its response. */
export interface Exchange {
  readonly reader: AnswerReader
  /** Undefined if the response is complete. Never rejects. */
  readonly done: Promise<AnswerFault | undefined>
}

/** An HTTP/1.1 connection for one request at a time. */
export class Connection {
  #socket: Socket | undefined
  #reader: AnswerReader | undefined
  #isOwn = false
  #isNear = false
  #requests = 0
  #lost = ''
  /** Called when the connection is no longer usable. */
  onLost: (() => void) | undefined

  private constructor() {}

  static dial(options: ConnectionOptions): Dialing {
    const connection = new Connection()
    // The kernel writes into the buffer of the page, without allocations: 150 kB cost a quarter of reading them through
    // events. The runtime supports this only without TLS.
    const onread: OnReadOpts = {
      buffer: () => connection.#reader?.room() ?? sharedRoom(),
      callback: count => {
        connection.#wrote(count)
        return true
      },
    }
    const dialer = new Dialer({ ...options, onread }, ['http/1.1'])
    return {
      done: dialer.dial().then(socket => connection.#open(socket)),
      stop: () => dialer.close(),
    }
  }

  /** Whether the peer is this host. */
  get isOwn(): boolean {
    return this.#isOwn
  }

  /** Whether the address of the peer is different on each host (loopback, link-local). */
  get isNear(): boolean {
    return this.#isNear
  }

  /** Whether it carried an earlier request. */
  get isUsed(): boolean {
    return this.#requests > 1
  }

  /** Reason why it is no longer usable; '' while it is. */
  get lost(): string {
    return this.#lost
  }

  exchange(request: string, limits: AnswerLimits, buffers: PageBuffers): Exchange {
    this.#requests++
    let settle: (fault: AnswerFault | undefined) => void = () => undefined
    const done = new Promise<AnswerFault | undefined>(resolve => {
      settle = resolve
    })
    const reader = new AnswerReader(limits, buffers, fault => {
      this.#reader = undefined
      if (!reader.keepsConnection) this.#lose('the previous response was the last on this connection')
      settle(fault)
    })
    this.#reader = reader
    if (this.#lost !== '') reader.end({ type: 'broken', cause: this.#lost })
    else this.#socket?.write(request, 'utf8')
    return { reader, done }
  }

  /** Closes the connection; a running exchange ends with the fault. */
  close(fault: AnswerFault): void {
    this.#reader?.end(fault)
    this.#lose(fault.cause)
  }

  #open(socket: Socket): Connection {
    this.#socket = socket
    socket.setKeepAlive(true, keepAliveMs)
    const { remoteAddress, localAddress } = socket
    this.#isOwn = remoteAddress === undefined || isOwnAddress(remoteAddress, localAddress ?? '')
    this.#isNear = isNearAddress(remoteAddress ?? '')
    // With `onread` there are no `data` events.
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', error => {
      const cause = `connection lost: ${faultText(error)}`
      this.#reader?.end({ type: 'broken', cause })
      this.#lose(cause)
    })
    socket.once('end', () => this.#closed())
    socket.once('close', () => this.#closed())
    return this
  }

  #wrote(count: number): void {
    if (this.#reader !== undefined) this.#reader.wrote(count)
    else this.#lose(foreignText(sharedRoom().subarray(0, count)))
  }

  #take(bytes: Buffer): void {
    if (this.#reader === undefined) this.#lose(foreignText(bytes))
    else if (!this.#reader.take(bytes)) this.#lose('data after the end of the response')
  }

  #closed(): void {
    this.#reader?.closed()
    this.#lose('the target closed the connection without a response')
  }

  #lose(why: string): void {
    if (this.#lost !== '') return
    this.#lost = why
    this.#socket?.destroy()
    this.onLost?.()
  }
}
