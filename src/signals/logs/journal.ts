import { existsSync } from 'node:fs'
import { Backoff } from '../../foundation/lib/backoff.ts'
import { GatheredBytes } from '../../foundation/lib/gathered-bytes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { type OutputChild, startForOutput } from '../../kernel/child.ts'
import { entryFields, JournalEntries } from './journal-entry.ts'
import type { EmitRecord } from './line-reader.ts'
import { type ParseOptions, RecordParser } from './record-parser.ts'

export interface JournalOptions {
  /** Takes a record, valid during the call. Must not throw. */
  readonly emit: EmitRecord
  readonly parse: ParseOptions
  /** Cursor to continue from: an earlier `cursorSeen`. '' for `startAt`. */
  readonly cursor: string
  readonly startAt: 'end' | 'beginning'
  /** Directory of journal files; undefined for those of the host. */
  readonly directory?: string | undefined
  /** Path of `journalctl`; undefined for that of the host. */
  readonly program?: string | undefined
  /** Called once per reason while it does not run. */
  warn(message: string): void
  /** Process whose entries are skipped. */
  readonly ownPid?: number
}

export interface JournalState {
  /** Reason why the journal is not read; '' if it is. */
  readonly reason: string
  /** Hint for the reason. */
  readonly hint: string
  /** Number of records passed on. */
  readonly records: number
  /** Number of lines that were not entries, or longer than 1 MiB. */
  readonly odd: number
  /** Number of restarts of `journalctl`. */
  readonly restarts: number
}

/** Path of `journalctl`. Debian 10 and older have it in `/bin`. */
export const journalctl =
  ['/usr/bin/journalctl', '/bin/journalctl'].find(path => existsSync(path)) ?? '/usr/bin/journalctl'

const mostLineBytes = 1024 * 1024
const mostErrorBytes = 2048
/** Time until a child that does not stop is killed, in milliseconds. */
const killMs = 2000
/** Time after which a running child counts as working, in milliseconds. */
const settledMs = 1500
const restart = { initialMs: 1000, maxMs: 60_000, multiplier: 2, jitter: 0.2 }

/**
 * Reads the systemd journal through `journalctl -f`, which supports all versions of its files. It is restarted, at its
 * last position, whenever it ends. An entry counts as seen once it is passed on: the caller stores `cursorSeen` when
 * all records up to it are secured.
 */
export class JournalSource {
  /** Cursor of the last entry passed on; '' before the first. */
  cursorSeen: string
  readonly #options: JournalOptions
  readonly #program: string
  readonly #entries: JournalEntries
  readonly #record = new LogRecord()
  readonly #backoff = new Backoff(restart)
  readonly #state = { reason: 'not started', hint: '', records: 0, odd: 0, restarts: 0 }
  #startedMs = 0
  #child: OutputChild | undefined
  #timer: NodeJS.Timeout | undefined
  #partial = new GatheredBytes(mostLineBytes)
  /** Whether the rest of an overlong line is being skipped. */
  #skips = false
  #isPaused = false
  #isStopped = false
  /** Whether the child has written entries since its start. */
  #hasOutput = false
  #errors = ''
  #warned = ''
  #ended: (() => void) | undefined
  #stopping: Promise<void> | undefined

  constructor(options: JournalOptions) {
    this.#options = options
    this.cursorSeen = isCursor(options.cursor) ? options.cursor : ''
    this.#program = options.program ?? journalctl
    this.#entries = new JournalEntries(new RecordParser(options.parse), options.ownPid)
  }

  get state(): JournalState {
    return this.#state
  }

  start(): void {
    this.#startedMs = Date.now()
    this.#works()
    this.#spawn()
  }

  /** Stops reading, apart from data already read; `journalctl` waits when its pipe is full. */
  pause(): void {
    this.#isPaused = true
    this.#child?.stdout.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#child?.stdout.resume()
  }

  /** Stops the child, and resolves at its end. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  #stop(): Promise<void> {
    this.#isStopped = true
    this.#state.reason = 'stopped'
    this.#state.hint = ''
    clearTimeout(this.#timer)
    const child = this.#child
    if (child === undefined) return Promise.resolve()
    const ended = new Promise<void>(resolve => {
      this.#ended = resolve
    })
    child.kill('SIGTERM')
    // Not unref'ed: this may be all that keeps the agent running until the child is gone. One that hangs in the kernel
    // is left.
    this.#timer = setTimeout(() => {
      child.kill('SIGKILL')
      this.#ended?.()
    }, killMs)
    child.stdout.destroy()
    child.stderr.destroy()
    return ended
  }

  #spawn(): void {
    this.#partial = new GatheredBytes(mostLineBytes)
    this.#skips = false
    this.#hasOutput = false
    this.#errors = ''
    let child: OutputChild
    try {
      child = startForOutput(this.#program, this.#arguments())
    } catch (error) {
      this.#failed((error as Error).message)
      return
    }
    this.#child = child
    let cause = ''
    child.on('error', (error: NodeJS.ErrnoException) => {
      cause = error.code === 'ENOENT' ? `${this.#program} not found` : error.message
    })
    child.on('close', (code, signal) => this.#close(cause || (signal ?? `exit status ${code}`)))
    child.stderr.on('data', (chunk: Buffer) => {
      if (this.#errors.length < mostErrorBytes) this.#errors += chunk.toString('latin1', 0, mostErrorBytes)
    })
    child.stdout.on('data', (chunk: Buffer) => this.#take(child, chunk))
    // A journal may be silent for long; a program that cannot read it exits immediately.
    this.#timer = setTimeout(() => this.#works(), settledMs).unref()
    for (const stream of [child.stdout, child.stderr]) stream.on('error', () => undefined)
    if (this.#isPaused) child.stdout.pause()
  }

  #works(): void {
    this.#warned = ''
    this.#state.reason = ''
    this.#state.hint = ''
  }

  #arguments(): string[] {
    const { directory } = this.#options
    return [
      '--follow',
      '--output=json',
      // Otherwise fields of more than 4096 bytes are omitted.
      '--all',
      '--quiet',
      '--no-pager',
      `--output-fields=${entryFields.join(',')}`,
      // All entries from the position on, not only the last ten.
      '--no-tail',
      ...this.#place(),
      ...(directory === undefined ? [] : [`--directory=${directory}`]),
    ]
  }

  #place(): string[] {
    if (this.cursorSeen !== '') return [`--after-cursor=${this.cursorSeen}`]
    // Not `--lines=0`: entries during a restart would be missed.
    return this.#options.startAt === 'beginning' ? [] : [`--since=@${(this.#startedMs / 1000).toFixed(3)}`]
  }

  #close(cause: string): void {
    clearTimeout(this.#timer)
    this.#child = undefined
    if (this.#isStopped) {
      this.#ended?.()
      return
    }
    const stderr = this.#errors.trim().replaceAll(/\s+/g, ' ')
    if (this.#hasOutput) this.#backoff.reset()
    else if (/cursor/i.test(stderr) && this.cursorSeen !== '') {
      this.cursorSeen = ''
      this.#options.warn(
        `position in the systemd journal not found (${stderr}); reading starts as on a new host`,
      )
    }
    this.#failed(stderr === '' ? cause : `${stderr} (${cause})`)
  }

  #failed(reason: string): void {
    const { directory } = this.#options
    this.#state.reason = `journalctl failed: ${reason}`
    this.#state.hint = reason.endsWith('not found')
      ? 'install systemd, or set agent.logs.journald: false'
      : `run ${this.#program} -f${directory === undefined ? '' : ` --directory=${directory}`} as the user of svc and fix the error that it reports`
    // A child that worked and ended is restarted without a warning.
    if (!this.#hasOutput && this.#warned !== reason) {
      this.#warned = reason
      this.#options.warn(`cannot read the systemd journal: ${this.#state.reason}; ${this.#state.hint}`)
    }
    this.#timer = setTimeout(() => {
      this.#state.restarts++
      this.#spawn()
    }, this.#backoff.next()).unref()
  }

  #take(child: OutputChild, chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      this.#piece(chunk.subarray(from, end), true)
      from = end + 1
    }
    if (from < chunk.length) this.#piece(Buffer.from(chunk.subarray(from)), false)
    // One chunk per turn, so that other work can run during a backlog.
    child.stdout.pause()
    setImmediate(() => {
      if (!this.#isPaused) child.stdout.resume()
    })
  }

  /** Takes a line, or a piece of one. */
  #piece(piece: Buffer, isLast: boolean): void {
    if (!this.#skips && !this.#partial.add(piece)) {
      this.#skips = true
      this.#state.odd++
    }
    if (!isLast && !this.#skips) return
    const line = this.#partial.bytes
    this.#partial = new GatheredBytes(mostLineBytes)
    if (this.#skips) this.#skips = !isLast
    else this.#line(line)
  }

  #line(line: Buffer): void {
    if (line.length === 0 || this.#isStopped) return
    const entries = this.#entries
    const kind = entries.read(this.#record, line, Date.now() * 1000)
    if (kind === 'odd') {
      this.#state.odd++
      return
    }
    if (!this.#hasOutput) this.#works()
    this.#hasOutput = true
    if (kind === 'record') {
      this.#state.records++
      this.#options.emit(this.#record)
    }
    if (isCursor(entries.cursor)) this.cursorSeen = entries.cursor
  }
}

/** Form of a cursor (sd_journal_get_cursor(3)), which is safe as a program argument. */
function isCursor(text: string): boolean {
  return text.length <= 512 && /^[a-z]=[0-9A-Za-z;=]+$/.test(text)
}

const lineFeed = 0x0a
