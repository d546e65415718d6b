import { fieldKey, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { bufferOf, FieldCursor } from './field-cursor.ts'
import { pruneProfiles } from './prune-profiles.ts'

/** A part of a request, which is a valid request. */
export interface Part {
  /** Number of items as receivers count them: spans, data points, log records, profiles. */
  readonly items: number
  readonly body: Uint8Array
}

/** A level of messages between the request and its items. */
interface Level {
  /** Fields with messages of the next level; all others are copied into every part that has any of its items. */
  readonly leads: (field: number) => boolean
  /** Next level; undefined if each of these messages is one item. */
  readonly below: Level | undefined
}

const first = (field: number): boolean => field === 1
const second = (field: number): boolean => field === 2
/** Fields of the kinds of metric data in metrics.proto; each has its points in field 1. */
const metricData = (field: number): boolean => (field >= 5 && field <= 11 && field % 2 === 1) || field === 10

const items: Level = { leads: second, below: undefined }
const points: Level = { leads: metricData, below: { leads: first, below: undefined } }

/** Requests, resources and scopes have the same numbers in all signals. */
function requestLevel(signal: Signal): Level {
  const scope = signal === 'metrics' ? { leads: second, below: points } : items
  return { leads: first, below: { leads: second, below: scope } }
}

const levels: Readonly<Record<Signal, Level>> = {
  traces: requestLevel('traces'),
  metrics: requestLevel('metrics'),
  logs: requestLevel('logs'),
  profiles: requestLevel('profiles'),
}

/**
 * Number of items that a receiver counts in a request: spans, data points, log records, profiles. Throws a RangeError
 * if the bytes are not a request.
 */
export function countItems(signal: Signal, body: Uint8Array): number {
  return countBelow(new FieldCursor(bufferOf(body)), levels[signal])
}

function countBelow(cursor: FieldCursor, { leads, below }: Level): number {
  let count = 0
  while (cursor.next())
    if (cursor.type === WireType.bytes && leads(cursor.field))
      count += below === undefined ? 1 : countBelow(cursor.message(), below)
  return count
}

/**
 * Halves a request by its items; undefined if it has fewer than two. Other data goes with the items that
 * it belongs to. Fields are copied without decoding, so that unknown fields are
 * kept. Profiles are the exception: each half has its own dictionary. Throws a RangeError if the bytes are not a
 * request.
 */
export function splitRequest(signal: Signal, body: Uint8Array): readonly [Part, Part] | undefined {
  const count = countItems(signal, body)
  if (count < 2) return undefined
  const half = Math.ceil(count / 2)
  return [partOf(signal, body, 0, half), partOf(signal, body, half, Number.POSITIVE_INFINITY)]
}

function partOf(signal: Signal, body: Uint8Array, from: number, to: number): Part {
  const part = new Cut(body, from, to).part(levels[signal])
  return signal === 'profiles' ? { ...part, body: pruneProfiles(part.body) } : part
}

/** Part of a message: ranges of the request, and headers of messages that became shorter. */
interface Copy {
  readonly pieces: Uint8Array[]
  bytes: number
  /**
   * Whether it contains any of its items: without any it is omitted. A message that had none from the start goes
   * unchanged into one part.
   */
  filled: boolean
}

/** Copies the items with the numbers `from` to `to` (exclusive) of a request. */
class Cut {
  readonly #buffer: Buffer
  readonly #from: number
  readonly #to: number
  /** Items passed so far. */
  #at = 0

  constructor(body: Uint8Array, from: number, to: number) {
    this.#buffer = bufferOf(body)
    this.#from = from
    this.#to = to
  }

  part(level: Level): Part {
    const { pieces, bytes } = this.#copy(new FieldCursor(this.#buffer), level)
    return { items: Math.min(this.#at, this.#to) - this.#from, body: Buffer.concat(pieces, bytes) }
  }

  #copy(cursor: FieldCursor, level: Level): Copy {
    const copy: Copy = { pieces: [], bytes: 0, filled: false }
    /** Range being copied: adjacent fields are copied together. */
    let start = 0
    let end = 0
    const flush = (): void => {
      if (end > start) add(copy, this.#buffer.subarray(start, end))
      start = end
    }
    while (cursor.next()) {
      if (cursor.type === WireType.bytes && level.leads(cursor.field)) {
        const before = this.#at
        let inner: Copy | undefined
        if (level.below === undefined) this.#at++
        else inner = this.#copy(cursor.message(), level.below)
        const whole = before >= this.#from && before < this.#to && this.#at <= this.#to
        copy.filled ||= whole || inner?.filled === true
        if (!whole) {
          if (inner?.filled) {
            flush()
            addMessage(copy, cursor.field, inner)
          }
          continue
        }
      }
      if (cursor.start !== end) {
        flush()
        start = cursor.start
      }
      end = cursor.valueEnd
    }
    flush()
    return copy
  }
}

function add(copy: Copy, piece: Uint8Array): void {
  copy.pieces.push(piece)
  copy.bytes += piece.length
}

function addMessage(copy: Copy, field: number, { pieces, bytes }: Copy): void {
  const out = new Writer(16)
  out.header(fieldKey(field, WireType.bytes), bytes)
  add(copy, out.written())
  for (const piece of pieces) add(copy, piece)
}
