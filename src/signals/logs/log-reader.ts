import { basename } from 'node:path'
import { utf8Text } from '../../foundation/lib/utf8-text.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { criForm } from './cri-form.ts'
import { dockerForm } from './docker-form.ts'
import { type LineForm, plainForm, ReadLine } from './line-form.ts'
import { LineParts, type TakeText, wholeCharacters } from './line-parts.ts'
import type { EmitRecord, LineReader } from './line-reader.ts'
import { hasWaited, Multiline, type MultilineOptions } from './multiline.ts'
import { clearRecord, type ParseOptions, RecordParser } from './record-parser.ts'
import type { TextHolder, WaitingText } from './waiting-text.ts'

/** Form of the lines of a file: as written, or with time and stream as added by Docker or Kubernetes. */
export type LogForm = 'plain' | 'docker' | 'cri'

export interface LogReaderOptions {
  /** Path of the file, for attributes. */
  readonly path: string
  readonly parse: ParseOptions
  /** Undefined if each line is a record. */
  readonly multiline?: MultilineOptions | undefined
  /** Maximum body length, in bytes. */
  readonly maxBytes: number
  /** Owner of the log: see `logOwner`. */
  readonly owner: string
  /** Limit on text that waits in all readers for further lines. */
  readonly waiting: WaitingText
  /** Takes a record, valid during the call. Must not throw, nor pass lines to a reader. */
  readonly emit: EmitRecord
  /** Clock, in milliseconds since the Unix epoch. */
  readonly now?: () => number
}

/** Maximum wait for the next part, in milliseconds: after that the program has ended without a line feed. */
const partTimeoutMs = 5000

/**
 * Makes records from the lines of one file. Blank lines make none, except inside a record of several lines. A carriage
 * return at the end of a line is removed, invalid UTF-8 becomes U+FFFD, and terminal colours are removed.
 */
export function logReader(form: LogForm, options: LogReaderOptions): LineReader {
  return new FormReader(forms[form], options)
}

const forms: Readonly<Record<LogForm, LineForm>> = { plain: plainForm, docker: dockerForm, cri: criForm }
/** Stream names by number. */
const streamNames = ['', 'stdout', 'stderr'] as const

// Shared by thousands of files: each is in use only during one call.
const line = new ReadLine()
const record = new LogRecord()
const parsers = new Map<string, RecordParser>()

function parserOf({ json, severity, traceContext }: ParseOptions): RecordParser {
  const key = `${json} ${severity} ${traceContext}`
  const parser = parsers.get(key) ?? new RecordParser({ json, severity, traceContext })
  parsers.set(key, parser)
  return parser
}

class FormReader implements LineReader, TextHolder {
  odd = 0
  heldBytes = 0
  readonly owner: string
  readonly #form: LineForm
  readonly #options: LogReaderOptions
  readonly #now: () => number
  readonly #make: RecordMaker
  /** Lines by stream number; created with the first line. */
  readonly #streams: (StreamLines | undefined)[] = [undefined, undefined, undefined]

  constructor(form: LineForm, options: LogReaderOptions) {
    this.#form = form
    this.owner = options.owner
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#make = new RecordMaker(options)
  }

  line(bytes: Uint8Array, from: number, to: number, begin: number): void {
    const buffer = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const nowMs = this.#now()
    if (!this.#form(line, buffer, from, Math.min(to, buffer.length))) this.odd++
    this.#stream(line.stream).add(line, begin, nowMs)
    this.#count()
  }

  flush(all: boolean): void {
    const nowMs = this.#now()
    for (const stream of this.#streams) stream?.flush(all, nowMs)
    this.#count()
  }

  get heldFrom(): number {
    let held = -1
    for (const stream of this.#streams) {
      const begin = stream === undefined ? -1 : stream.begin
      if (begin >= 0 && (held < 0 || begin < held)) held = begin
    }
    return held
  }

  #count(): void {
    const before = this.heldBytes
    let held = 0
    for (const stream of this.#streams) if (stream !== undefined) held += stream.heldBytes
    if (held === before) return
    this.heldBytes = held
    this.#options.waiting.changed(this, before)
  }

  #stream(number: number): StreamLines {
    const known = this.#streams[number]
    if (known !== undefined) return known
    const made = new StreamLines(this.#options, streamNames[number]!, this.#make)
    this.#streams[number] = made
    return made
  }
}

/** Creates the records of one file. */
class RecordMaker {
  readonly #path: string
  readonly #name: string
  readonly #parser: RecordParser
  readonly #emit: EmitRecord

  constructor({ path, parse, emit }: LogReaderOptions) {
    this.#path = path
    this.#name = basename(path)
    this.#parser = parserOf(parse)
    this.#emit = emit
  }

  make(stream: string, text: string, timeUs: number, nowMs: number): void {
    if (isBlank(text)) return
    clearRecord(record)
    record.timeUs = timeUs
    record.observedUs = nowMs * 1000
    record.attributes.add('log.file.path', this.#path)
    record.attributes.add('log.file.name', this.#name)
    if (stream !== '') record.attributes.add('log.iostream', stream)
    this.#parser.fill(record, text)
    this.#emit(record)
  }
}

function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x20) return false
  return true
}

/** Joins the lines of one stream to records. */
class StreamLines {
  readonly #mostBytes: number
  readonly #parts: LineParts
  readonly #multiline: Multiline | undefined
  readonly #makeRecord: (text: string, timeUs: number, nowMs: number) => void
  /** Offset of the current text. */
  #begin = 0
  #timeUs = 0
  #nowMs = 0

  constructor(options: LogReaderOptions, stream: string, maker: RecordMaker) {
    this.#mostBytes = options.maxBytes
    this.#parts = new LineParts(options.maxBytes)
    this.#makeRecord = (text, timeUs, nowMs) => maker.make(stream, text, timeUs, nowMs)
    const { multiline } = options
    if (multiline !== undefined)
      this.#multiline = new Multiline(multiline, options.maxBytes, (text, timeUs) =>
        this.#makeRecord(text, timeUs, this.#nowMs),
      )
  }

  /** Offset of the first waiting line; -1 for none. */
  get begin(): number {
    const parts = this.#parts.begin
    const lines = this.#multiline?.begin ?? -1
    return lines >= 0 && (parts < 0 || lines < parts) ? lines : parts
  }

  get heldBytes(): number {
    return this.#parts.heldBytes + (this.#multiline?.heldBytes ?? 0)
  }

  add(read: ReadLine, begin: number, nowMs: number): void {
    const parts = this.#parts
    this.#nowMs = nowMs
    this.#begin = begin
    this.#timeUs = read.timeUs
    if (parts.begin < 0) {
      if (!read.isPart) {
        this.#pieces(read.bytes, read.from, read.to)
        return
      }
      parts.begin = begin
      parts.timeUs = read.timeUs
    }
    this.#begin = parts.begin
    this.#timeUs = parts.timeUs
    if (parts.add(read.bytes, read.from, read.to, this.#takeText)) {
      // So that an endless line is not read again from its start.
      parts.begin = begin
      parts.timeUs = read.timeUs
    }
    parts.changedMs = nowMs
    if (read.isPart) return
    this.#begin = parts.begin
    this.#timeUs = parts.timeUs
    parts.finish(this.#takeText)
  }

  flush(all: boolean, nowMs: number): void {
    const parts = this.#parts
    this.#nowMs = nowMs
    if (parts.begin >= 0 && (all || hasWaited(parts.changedMs, nowMs, partTimeoutMs))) {
      this.#begin = parts.begin
      this.#timeUs = parts.timeUs
      parts.finish(this.#takeText)
    }
    if (all) this.#multiline?.flush()
    else this.#multiline?.expire(nowMs)
  }

  #pieces(bytes: Buffer, from: number, to: number): void {
    let at = from
    while (to - at > this.#mostBytes) {
      const length = wholeCharacters(bytes, this.#mostBytes, at)
      this.#takeText(bytes, at, at + length)
      at += length
    }
    this.#takeText(bytes, at, to)
  }

  readonly #takeText: TakeText = (bytes, from, to) => {
    const end = to > from && bytes[to - 1] === carriageReturn ? to - 1 : to
    const text = utf8Text(bytes, from, end)
    if (this.#multiline === undefined) this.#makeRecord(text, this.#timeUs, this.#nowMs)
    else this.#multiline.add(text, end - from, this.#timeUs, this.#begin, this.#nowMs)
  }
}

const carriageReturn = 0x0d
