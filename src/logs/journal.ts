import { existsSync } from 'node:fs'
import { startTeller, type TellingChild } from '../kernel/child.ts'
import { Backoff } from '../lib/backoff.ts'
import { GatheredBytes } from '../lib/gathered-bytes.ts'
import { LogRecord } from '../model/log.ts'
import { entryFields, JournalEntries } from './journal-entry.ts'
import type { EmitRecord } from './line-reader.ts'
import { type ParseOptions, RecordParser } from './record-parser.ts'

export interface JournalOptions {
  /** Takes a record that is valid for the time of the call. It must not throw. */
  readonly emit: EmitRecord
  readonly parse: ParseOptions
  /** Where to go on: a `cursorSeen` of before. '': as `startAt` says. */
  readonly cursor: string
  readonly startAt: 'end' | 'beginning'
  /** Holds journal files; undefined: those of the host. */
  readonly directory?: string | undefined
  /** Undefined: `journalctl` of the host. */
  readonly program?: string | undefined
  /** Told once of each reason why it does not run, until it runs again. */
  warn(message: string): void
  /** Entries of this process are left out. */
  readonly ownPid?: number
}

export interface JournalState {
  /** Why it is not read; '': it is. */
  readonly reason: string
  /** What to do about it. */
  readonly hint: string
  /** Records that were handed on. */
  readonly records: number
  /** Lines that were no entries, or longer than 1 MiB. */
  readonly odd: number
  /** How often `journalctl` was started again. */
  readonly restarts: number
}

/** Where it is, or would be. Debian 10 and older have it in `/bin`. */
export const journalctl =
  ['/usr/bin/journalctl', '/bin/journalctl'].find(path => existsSync(path)) ?? '/usr/bin/journalctl'

const mostLineBytes = 1024 * 1024
const mostErrorBytes = 2048
/** A child that does not end when it is asked to. */
const killMs = 2000
/** A child that runs for so long works. */
const settledMs = 1500
const restart = { initialMs: 1000, maxMs: 60_000, multiplier: 2, jitter: 0.2 }

/**
 * Follows the systemd journal through `journalctl -f`, which knows all versions of its files. It is started again, where
 * it was, whenever it ends. An entry counts as seen when it was handed on: whoever owns this keeps `cursorSeen` when all
 * records up to it are safe.
 */
export class JournalSource {
  /** The place of the last entry that was handed on; '' before the first. */
  cursorSeen: string
  readonly #options: JournalOptions
  readonly #program: string
  readonly #entries: JournalEntries
  readonly #record = new LogRecord()
  readonly #backoff = new Backoff(restart)
  readonly #state = { reason: 'not started', hint: '', records: 0, odd: 0, restarts: 0 }
  #startedMs = 0
  #child: TellingChild | undefined
  #timer: NodeJS.Timeout | undefined
  #partial = new GatheredBytes(mostLineBytes)
  /** The rest of a line that is too long. */
  #skips = false
  #isPaused = false
  #isStopped = false
  /** Since the child was started. */
  #hasTold = false
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

  /** Nothing more is handed on, but for what was read already; `journalctl` waits when its pipe is full. */
  pause(): void {
    this.#isPaused = true
    this.#child?.stdout.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#child?.stdout.resume()
  }

  /** Ends the child, and resolves when it has ended. */
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
    // Not let go: nothing else may keep the agent until the child is gone. One that hangs in the kernel is left there.
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
    this.#hasTold = false
    this.#errors = ''
    let child: TellingChild
    try {
      child = startTeller(this.#program, this.#arguments())
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
    // A journal may be silent for long; a program that cannot read it ends at once.
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
      // Without it, fields of more than 4096 bytes are left out.
      '--all',
      '--quiet',
      '--no-pager',
      `--output-fields=${entryFields.join(',')}`,
      // All that there is from the place on, and not the last ten.
      '--no-tail',
      ...this.#place(),
      ...(directory === undefined ? [] : [`--directory=${directory}`]),
    ]
  }

  #place(): string[] {
    if (this.cursorSeen !== '') return [`--after-cursor=${this.cursorSeen}`]
    // Not `--lines=0`: what comes while it is started again would be left out.
    return this.#options.startAt === 'beginning' ? [] : [`--since=@${(this.#startedMs / 1000).toFixed(3)}`]
  }

  #close(cause: string): void {
    clearTimeout(this.#timer)
    this.#child = undefined
    if (this.#isStopped) {
      this.#ended?.()
      return
    }
    const told = this.#errors.trim().replaceAll(/\s+/g, ' ')
    if (this.#hasTold) this.#backoff.reset()
    else if (/cursor/i.test(told) && this.cursorSeen !== '') {
      this.cursorSeen = ''
      this.#options.warn(
        `position in the systemd journal not found (${told}); reading starts as on a new host`,
      )
    }
    this.#failed(told === '' ? cause : `${told} (${cause})`)
  }

  #failed(reason: string): void {
    const { directory } = this.#options
    this.#state.reason = `journalctl failed: ${reason}`
    this.#state.hint = reason.endsWith('not found')
      ? 'install systemd, or set agent.logs.journald: false'
      : `run ${this.#program} -f${directory === undefined ? '' : ` --directory=${directory}`} as the user of svc and fix the error that it reports`
    // One that told something and ended is started again, and no news.
    if (!this.#hasTold && this.#warned !== reason) {
      this.#warned = reason
      this.#options.warn(`cannot read the systemd journal: ${this.#state.reason}; ${this.#state.hint}`)
    }
    this.#timer = setTimeout(() => {
      this.#state.restarts++
      this.#spawn()
    }, this.#backoff.next()).unref()
  }

  #take(child: TellingChild, chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      this.#piece(chunk.subarray(from, end), true)
      from = end + 1
    }
    if (from < chunk.length) this.#piece(Buffer.from(chunk.subarray(from)), false)
    // One chunk a turn: others have their turn while much is waiting.
    child.stdout.pause()
    setImmediate(() => {
      if (!this.#isPaused) child.stdout.resume()
    })
  }

  /** A line, or a piece of one. */
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
    if (!this.#hasTold) this.#works()
    this.#hasTold = true
    if (kind === 'record') {
      this.#state.records++
      this.#options.emit(this.#record)
    }
    if (isCursor(entries.cursor)) this.cursorSeen = entries.cursor
  }
}

/** As systemd writes them (sd_journal_get_cursor(3)): nothing in it can be taken for anything else by a program. */
function isCursor(text: string): boolean {
  return text.length <= 512 && /^[a-z]=[0-9A-Za-z;=]+$/.test(text)
}

const lineFeed = 0x0a
