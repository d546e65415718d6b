import { connect, type Socket } from 'node:net'
import {
  type DBusCall,
  type DBusMessage,
  decodeMessage,
  encodeCall,
  messageSize,
  messageTypes,
  prefixBytes,
} from './dbus-message.ts'
import type { DBusValue } from './dbus-value.ts'

/** Maximum calls in flight. */
const mostCalls = 1024
/** Maximum length of a line during authentication. */
const mostLineBytes = 1024

/** The peer answered a call with an error. */
export class DBusError extends Error {
  override readonly name = 'DBusError'
  /** For example `org.freedesktop.DBus.Error.UnknownProperty`. */
  readonly errorName: string

  constructor(errorName: string, text: string) {
    super(text === '' ? errorName : `${text} (${errorName})`)
    this.errorName = errorName
  }
}

/** A method call, and the required signature of its reply. */
export interface DBusRequest extends DBusCall {
  readonly returns: string
}

export interface DBusClientOptions {
  /** Paths of Unix sockets, tried in turn; a leading NUL means the abstract namespace. May throw. */
  sockets(): readonly string[]
  /** A bus assigns names and requires a greeting; otherwise the peer is the service. */
  readonly isBus: boolean
}

/**
 * Calls methods over D-Bus (specification 0.43). The first call connects, and the connection is kept until it fails or
 * a reply times out: the next call then uses a new one.
 */
export class DBusClient {
  readonly #options: DBusClientOptions
  #session: Session | undefined

  constructor(options: DBusClientOptions) {
    this.#options = options
  }

  /**
   * The values of the reply. Rejects with a `DBusError` if the peer replies with an error; any other error means that
   * the connection failed, with all calls in flight.
   */
  call(request: DBusRequest, signal: AbortSignal): Promise<readonly DBusValue[]> {
    return this.#with(signal, session => session.call(request))
  }

  /** Connects unless already connected. Rejects if no peer answers with valid D-Bus. */
  connect(signal: AbortSignal): Promise<void> {
    return this.#with(signal, async () => {})
  }

  async #with<T>(signal: AbortSignal, use: (session: Session) => Promise<T>): Promise<T> {
    if (signal.aborted) throw new Error('D-Bus call failed: timed out before it was sent')
    if (this.#session === undefined || this.#session.hasFailed) this.#session = new Session(this.#options)
    const session = this.#session
    const late = () => session.fail(new Error('D-Bus call failed: no answer in time'))
    signal.addEventListener('abort', late, { once: true })
    try {
      await session.ready
      return await use(session)
    } finally {
      signal.removeEventListener('abort', late)
    }
  }

  /** Closes the connection and fails all calls in flight. A later call connects again. */
  close(): void {
    this.#session?.fail(new Error('D-Bus call failed: the connection was closed'))
    this.#session = undefined
  }
}

interface Waiting {
  readonly returns: string
  resolve(values: readonly DBusValue[]): void
  reject(error: Error): void
}

/** One connection, from its socket to its failure. */
class Session {
  readonly ready: Promise<void>
  readonly #waiting = new Map<number, Waiting>()
  #failure: Error | undefined
  #socket: Socket | undefined
  #lastSerial = 0
  /** Rejects the pending authentication. */
  #failStart: (error: Error) => void = () => {}

  constructor(options: DBusClientOptions) {
    const failed = new Promise<never>((_, reject) => {
      this.#failStart = reject
    })
    this.ready = Promise.race([this.#start(options), failed])
    // Callers await it; a late failure may have no caller left.
    this.ready.catch(error => this.fail(error))
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  fail(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#failStart(error)
    this.#socket?.destroy()
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }

  call(request: DBusRequest): Promise<readonly DBusValue[]> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) throw this.#failure
      if (this.#waiting.size >= mostCalls)
        throw new Error(`D-Bus call failed: ${mostCalls} calls are already waiting`)
      const serial = (this.#lastSerial % 0xffffffff) + 1
      const bytes = encodeCall(serial, request)
      this.#lastSerial = serial
      this.#waiting.set(serial, { returns: request.returns, resolve, reject })
      this.#socket!.write(bytes)
    })
  }

  async #start({ sockets, isBus }: DBusClientOptions): Promise<void> {
    await this.#authenticate(await this.#connect(sockets()))
    if (!isBus) return
    const bus = 'org.freedesktop.DBus'
    await this.call({
      destination: bus,
      path: '/org/freedesktop/DBus',
      interface: bus,
      member: 'Hello',
      returns: 's',
    })
  }

  /** Connects to the first socket that accepts. */
  async #connect(sockets: readonly string[]): Promise<Socket> {
    const faults: string[] = []
    for (const path of sockets) {
      const socket = connect(path)
      this.#socket = socket
      let isOpen = false
      let fault = 'the peer closed the connection'
      socket.on('error', error => {
        fault = error.message
      })
      await new Promise<void>(resolve => {
        socket.once('connect', () => {
          isOpen = true
          resolve()
        })
        socket.once('close', () => {
          if (isOpen) this.fail(new Error(`D-Bus call failed: ${fault}`))
          resolve()
        })
      })
      if (this.#failure !== undefined) throw this.#failure
      if (isOpen) return socket
      faults.push(fault)
    }
    throw new Error(`cannot connect to D-Bus: ${faults.join('; ')}`)
  }

  /** Authenticates as this process, which the kernel verifies (EXTERNAL), then switches to messages. */
  #authenticate(socket: Socket): Promise<void> {
    return new Promise(resolve => {
      let line = Buffer.alloc(0)
      const read = (chunk: Buffer) => {
        line = Buffer.concat([line, chunk])
        const end = line.indexOf('\r\n')
        if (end < 0 && line.length <= mostLineBytes) return
        if (end < 0 || !line.toString('latin1').startsWith('OK ') || end + 2 !== line.length) {
          const answer = line.toString('latin1', 0, Math.min(end < 0 ? 60 : end, 60)).replace(/[^ -~]/g, '?')
          this.fail(new Error(`cannot connect to D-Bus: it answered "${answer}" to AUTH EXTERNAL`))
          return
        }
        socket.off('data', read)
        const messages = new Messages(message => this.#take(message))
        socket.on('data', bytes => this.#guard(() => messages.add(bytes)))
        socket.write('BEGIN\r\n')
        resolve()
      }
      socket.on('data', read)
      const user = Buffer.from(String(process.geteuid!())).toString('hex')
      socket.write(`\0AUTH EXTERNAL ${user}\r\n`)
    })
  }

  #guard(read: () => void): void {
    try {
      if (this.#failure === undefined) read()
    } catch (error) {
      this.fail(new Error(`cannot read from D-Bus: ${(error as Error).message}`, { cause: error }))
    }
  }

  /** Ignores signals, calls and unexpected replies. */
  #take(message: DBusMessage): void {
    const { type, replySerial, signature } = message
    if (type !== messageTypes.reply && type !== messageTypes.error) return
    const waiting = this.#waiting.get(replySerial)
    if (waiting === undefined) return
    if (type === messageTypes.reply && signature !== waiting.returns)
      throw new Error(
        `an answer is of type "${printable(signature)}" where "${waiting.returns}" was expected`,
      )
    const values = type === messageTypes.reply || signature === 's' ? message.body() : []
    this.#waiting.delete(replySerial)
    if (type === messageTypes.reply) waiting.resolve(values)
    else waiting.reject(new DBusError(printable(message.errorName), printable(String(values[0] ?? ''))))
  }
}

function printable(text: string): string {
  return text.slice(0, 200).replace(/\p{Control}/gu, '?')
}

/** Assembles messages from pieces. */
class Messages {
  readonly #take: (message: DBusMessage) => void
  #pieces: Buffer[] = []
  #size = 0
  /** Bytes required before parsing can continue. */
  #needed = prefixBytes

  constructor(take: (message: DBusMessage) => void) {
    this.#take = take
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size < this.#needed) return
    let rest = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces)
    this.#needed = prefixBytes
    while (rest.length >= prefixBytes) {
      const size = messageSize(rest)
      if (rest.length < size) {
        this.#needed = size
        break
      }
      this.#take(decodeMessage(rest.subarray(0, size)))
      rest = rest.subarray(size)
    }
    this.#pieces = rest.length > 0 ? [rest] : []
    this.#size = rest.length
  }
}

/**
 * The sockets in an address (specification 0.43, "Server Addresses"): transport `unix`, by path or abstract name.
 * Throws if there is none.
 */
export function parseDBusAddress(address: string): readonly string[] {
  const sockets: string[] = []
  for (const entry of address.split(';')) {
    const [, transport, rest] = /^(\w+):(.*)$/s.exec(entry) ?? []
    if (transport !== 'unix') continue
    const pairs = new Map(rest!.split(',').map(pair => pair.split('=', 2) as [string, string]))
    const path = pairs.get('path')
    const abstract = pairs.get('abstract')
    if (path) sockets.push(unescapeAddress(path))
    else if (abstract) sockets.push(`\0${unescapeAddress(abstract)}`)
  }
  if (sockets.length === 0)
    throw new Error(
      `cannot use the D-Bus address "${address}": not a Unix socket address such as unix:path=/run/bus`,
    )
  return sockets
}

function unescapeAddress(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, bytes =>
    Buffer.from(bytes.replaceAll('%', ''), 'hex').toString(),
  )
}
