// Files and file systems that may never answer (of a server, or of another program), asked by a program of its own:
// native/probe/probe.c has the protocol.

import { errnoText } from '../foundation/lib/errno-text.ts'
import { errorText, type Logger } from '../foundation/lib/logger.ts'
import { utf8Text } from '../foundation/lib/utf8-text.ts'
import { findAsset } from './assets.ts'
import { type Child, startChild } from './child.ts'

/** Of statfs(2). Blocks are of `bsize` bytes. */
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

/** Why there is no answer: the file system's own reason, or one of the probe. The message is the reason alone. */
export class RemoteFileError extends Error {
  override readonly name = 'RemoteFileError'
  /** Of the file system or process that was asked; 0: the probe's own reason. */
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

/** Requests that the probe serves at once (MOST_THREADS); the others wait here. */
const mostAsked = 512
const mostQueued = 65_536
const mostListBytes = 1024 * 1024
/** PATH_MAX without its zero byte. */
const mostPathBytes = 4095
/** No answer is longer: the largest file with its head. */
const mostAnswerBytes = 17 * 1024 * 1024
/** What memory is read in (BLOCK and MOST_BLOCKS of native/probe/probe.c). */
const blockBytes = 4096
const mostBlocks = 16
/** A probe that ended is not started again before this time since its start. */
const restartMs = 1000

interface Request {
  readonly question: string
  resolve(payload: Buffer): void
  reject(error: RemoteFileError): void
}

/**
 * Asks without ever waiting itself: an answer may come at once, hours later, or never, so callers bound their own
 * patience. A question that waits for its answer is not asked again: whoever repeats it is refused.
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
   * Rejects with a `RemoteFileError`, as all of these do. `mount` tells apart what is mounted at a path in turn: one that hangs
   * for good is no reason not to ask the next.
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

  /** The first of its bytes. */
  async beginning(path: string | Buffer, mostBytes: number): Promise<Buffer> {
    const payload = await this.#ask('B', mostBytes, path)
    return payload.subarray(payload.indexOf(10) + 1)
  }

  /**
   * Memory of a process by its directory in /proc, 60 KiB at most; undefined where some of it is not in memory, as what it
   * never touched of a file, or is not mapped.
   */
  async memory(process: string, address: number, length: number): Promise<Buffer | undefined> {
    const first = Math.floor(address / blockBytes)
    const count = Math.floor((address + length - 1) / blockBytes) - first + 1
    if (count > mostBlocks) throw new RemoteFileError('too much memory')
    const descriptors = (await this.#ask('O', 0, process)).toString('latin1')
    // To another one they are something else.
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
      // One that ended has nothing open.
      if (this.#probe === probe) this.#ask('C', 0, descriptors).catch(() => undefined)
    }
  }

  /** Names in the order of their bytes. */
  async list(path: string | Buffer): Promise<readonly string[]> {
    const payload = await this.#ask('L', mostListBytes, path)
    return utf8Text(payload, 0, payload.length).split('\0').slice(0, -1).sort()
  }

  /** Ends the probe. What was asked is rejected. */
  close(): void {
    this.#closed = true
    this.#fail('the agent ends')
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
    if (this.#closed) throw new RemoteFileError('the agent ends')
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

  /** Once, until there is an answer again. */
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
  /** Once, whatever the reason. */
  ended(reason: string): void
}

/** The running program, and the answers in what it writes. */
class Probe {
  readonly #child: Child
  readonly #events: ProbeEvents
  #chunks: Buffer[] = []
  #have = 0
  /** Bytes that are needed before it is worth looking again. */
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

  /** Waits for nothing: a thread in a system call that cannot be interrupted keeps the process, not the agent. */
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
