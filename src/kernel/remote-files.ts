// Accesses files and file systems that may never answer (network, FUSE) through a separate program: see
// native/probe/probe.c for the protocol.

import { errnoText } from '../foundation/lib/errno-text.ts'
import { errorText, type Logger } from '../foundation/lib/logger.ts'
import { utf8Text } from '../foundation/lib/utf8-text.ts'
import { findAsset } from './assets.ts'
import { type Child, startChild } from './child.ts'

/** From statfs(2). Blocks have `bsize` bytes. */
export interface FileSystemStats {
  readonly bsize: number
  readonly blocks: number
  readonly bfree: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

export interface RemoteFile {
  readonly bytes: Buffer
  /** Whole seconds since 1970. */
  readonly mtimeSeconds: number
}

/** Why there is no answer: the file system's error, or the probe's. The message is only the reason. */
export class RemoteFileError extends Error {
  override readonly name = 'RemoteFileError'
  /** Of the file system or process; 0: the probe failed. */
  readonly errno: number

  constructor(message: string, errno = 0) {
    super(message)
    this.errno = errno
  }
}

export interface RemoteFilesOptions {
  readonly log: Logger
  /** The probe. Undefined: it was not built. */
  readonly program?: string | undefined
}

/** Requests that the probe serves at once (MOST_THREADS); further ones are queued here. */
const mostAsked = 512
const mostQueued = 65_536
const mostListBytes = 1024 * 1024
/** PATH_MAX without its zero byte. */
const mostPathBytes = 4095
/** Maximum answer: the largest file with its header. */
const mostAnswerBytes = 17 * 1024 * 1024
/** Block size of memory reads (BLOCK and MOST_BLOCKS of native/probe/probe.c). */
const blockBytes = 4096
const mostBlocks = 16
/** Minimum time between two starts of the probe. */
const restartMs = 1000

interface Request {
  readonly question: string
  resolve(payload: Buffer): void
  reject(error: RemoteFileError): void
}

/**
 * Never blocks: an answer may arrive at once, hours later, or never, so callers set their own timeouts. A request that
 * is still unanswered is not sent a second time: repeating it is refused.
 */
export class RemoteFiles {
  readonly #log: Logger
  readonly #program: string | undefined
  readonly #open = new Set<string>()
  readonly #asked = new Map<number, Request>()
  #queue: Request[] = []
  #probe: Probe | undefined
  #startedAt = Number.NEGATIVE_INFINITY
  #nextId = 1
  #closed = false
  #warned = false

  constructor({ log, ...options }: RemoteFilesOptions) {
    this.#log = log
    this.#program = 'program' in options ? options.program : findAsset('svc-probe')
  }

  /**
   * Like all methods, rejects with a `RemoteFileError`. `mount` distinguishes successive mounts at one path: one that hangs
   * forever does not block requests to the next.
   */
  async statfs(path: string | Buffer, mount = ''): Promise<FileSystemStats> {
    const payload = await this.#ask('S', 0, path, mount)
    const [bsize = 0, blocks = 0, bfree = 0, bavail = 0, files = 0, ffree = 0] = payload
      .toString('latin1')
      .split(' ')
      .map(Number)
    return { bsize, blocks, bfree, bavail, files, ffree }
  }

  async read(path: string | Buffer, mostBytes: number): Promise<RemoteFile> {
    const payload = await this.#ask('R', mostBytes, path)
    const end = payload.indexOf(10)
    return { mtimeSeconds: Number(payload.toString('latin1', 0, end)), bytes: payload.subarray(end + 1) }
  }

  /** Its first bytes. */
  async beginning(path: string | Buffer, mostBytes: number): Promise<Buffer> {
    const payload = await this.#ask('B', mostBytes, path)
    return payload.subarray(payload.indexOf(10) + 1)
  }

  /**
   * Reads memory of a process by its directory in /proc, 60 KiB at most; undefined if some of it is not resident, such
   * as untouched pages of a file, or not mapped.
   */
  async memory(process: string, address: number, length: number): Promise<Buffer | undefined> {
    const first = Math.floor(address / blockBytes)
    const count = Math.floor((address + length - 1) / blockBytes) - first + 1
    if (count > mostBlocks) throw new RemoteFileError('too much memory')
    const descriptors = (await this.#ask('O', 0, process)).toString('latin1')
    // Their meaning is private to this probe.
    const probe = this.#probe
    try {
      const addresses = Array.from({ length: count }, (_, i) => (first + i) * blockBytes)
      const payload = await this.#ask('M', 0, `${descriptors} ${addresses.join(' ')}`)
      if (payload.length !== count * (1 + blockBytes)) return undefined
      const blocks = addresses.map((_, i) =>
        payload.subarray(i * (1 + blockBytes) + 1, (i + 1) * (1 + blockBytes)),
      )
      const start = address - first * blockBytes
      return Buffer.concat(blocks).subarray(start, start + length)
    } finally {
      // A probe that ended has nothing open.
      if (this.#probe === probe) this.#ask('C', 0, descriptors).catch(() => undefined)
    }
  }

  /** Names sorted by their bytes. */
  async list(path: string | Buffer): Promise<readonly string[]> {
    const payload = await this.#ask('L', mostListBytes, path)
    return utf8Text(payload, 0, payload.length).split('\0').slice(0, -1).sort()
  }

  /** Stops the probe. Pending requests are rejected. */
  close(): void {
    this.#closed = true
    this.#fail('the agent is stopping')
  }

  #ask(
    operation: 'S' | 'R' | 'B' | 'L' | 'O' | 'M' | 'C',
    limit: number,
    path: string | Buffer,
    mount = '',
  ): Promise<Buffer> {
    const bytes = Buffer.from(path)
    if (bytes.length > mostPathBytes) return Promise.reject(new RemoteFileError('file name too long'))
    const question = `${operation} ${limit} ${bytes.toString('hex')}\n`
    const key = `${mount} ${question}`
    if (this.#open.has(key)) return Promise.reject(new RemoteFileError('no answer yet'))
    const asked = new Promise<Buffer>((resolve, reject) => {
      if (this.#queue.length >= mostQueued)
        throw new RemoteFileError('too many file systems are being queried')
      this.#queue.push({ question, resolve, reject })
    }).finally(() => this.#open.delete(key))
    this.#open.add(key)
    this.#send()
    return asked
  }

  #send(): void {
    while (this.#queue.length > 0 && this.#asked.size < mostAsked) {
      const request = this.#queue.shift()!
      try {
        const probe = this.#started()
        const id = this.#nextId++
        this.#asked.set(id, request)
        probe.write(`${id} ${request.question}`)
      } catch (error) {
        request.reject(error as RemoteFileError)
      }
    }
  }

  #started(): Probe {
    if (this.#probe !== undefined) return this.#probe
    if (this.#closed) throw new RemoteFileError('the agent is stopping')
    if (this.#program === undefined) {
      this.#warn('svc-probe is not installed next to the agent')
      throw new RemoteFileError('no probe')
    }
    const now = performance.now()
    if (now - this.#startedAt < restartMs) throw new RemoteFileError('the probe ended')
    this.#startedAt = now
    let child: Child
    try {
      child = startChild(this.#program)
    } catch (error) {
      this.#warn(errorText(error))
      throw new RemoteFileError('no probe')
    }
    const probe = new Probe(child, {
      answered: (id, errno, payload) => this.#answered(id, errno, payload),
      ended: reason => {
        if (this.#probe !== probe) return
        this.#warn(reason)
        this.#fail('the probe ended')
      },
    })
    this.#probe = probe
    return probe
  }

  /** Once, until a request succeeds again. */
  #warn(reason: string): void {
    if (this.#warned) return
    this.#warned = true
    this.#log.warn('remote file systems are not read: svc-probe cannot run', { reason })
  }

  #answered(id: number, errno: number, payload: Buffer): void {
    const request = this.#asked.get(id)
    if (request === undefined) return
    this.#asked.delete(id)
    this.#warned = false
    if (errno === 0) request.resolve(payload)
    else request.reject(new RemoteFileError(errnoText(errno), errno))
    this.#send()
  }

  #fail(reason: string): void {
    const requests = [...this.#asked.values(), ...this.#queue]
    this.#asked.clear()
    this.#queue = []
    this.#probe?.kill()
    this.#probe = undefined
    for (const request of requests) request.reject(new RemoteFileError(reason))
  }
}

interface ProbeEvents {
  answered(id: number, errno: number, payload: Buffer): void
  /** Called once, whatever the reason. */
  ended(reason: string): void
}

/** The running program and the parser of its output. */
class Probe {
  readonly #child: Child
  readonly #events: ProbeEvents
  #chunks: Buffer[] = []
  #have = 0
  /** Bytes required before parsing can continue. */
  #need = 1

  constructor(child: Child, events: ProbeEvents) {
    this.#child = child
    this.#events = events
    child.on('error', error => events.ended(error.message))
    child.on('exit', (code, signal) => events.ended(signal ?? `exit status ${code}`))
    child.stdin.on('error', error => events.ended(error.message))
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  write(line: string): void {
    this.#child.stdin.write(line)
  }

  /** Does not wait: a thread in an uninterruptible system call keeps the process alive, but not the agent. */
  kill(): void {
    this.#child.kill('SIGKILL')
    this.#child.stdin.destroy()
    this.#child.stdout.destroy()
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#have += chunk.length
    if (this.#have < this.#need) return
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    this.#need = 1
    for (;;) {
      const end = rest.indexOf(10)
      if (end < 0) break
      const [id = Number.NaN, errno = Number.NaN, length = Number.NaN] = rest
        .toString('latin1', 0, end)
        .split(' ')
        .map(Number)
      if (!(id > 0 && errno >= 0 && length >= 0 && length <= mostAnswerBytes)) {
        this.#events.ended('unexpected output')
        return
      }
      if (rest.length < end + 1 + length) {
        this.#need = end + 1 + length
        break
      }
      this.#events.answered(id, errno, rest.subarray(end + 1, end + 1 + length))
      rest = rest.subarray(end + 1 + length)
    }
    this.#chunks = rest.length > 0 ? [rest] : []
    this.#have = rest.length
  }
}
