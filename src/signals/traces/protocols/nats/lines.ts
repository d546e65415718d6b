import { ByteRange, isBlank, lower } from '../../../../foundation/lib/byte-range.ts'

/** Control lines (NATS client protocol). */
export const verb = {
  none: 0,
  connect: 1,
  pub: 2,
  hpub: 3,
  sub: 4,
  unsub: 5,
  ping: 6,
  pong: 7,
  info: 8,
  msg: 9,
  hmsg: 10,
  ok: 11,
  err: 12,
} as const

/**
 * Their names in lower case, with their senders: 1 for the client, 2 for the server, 3 for both. The frequent ones come
 * first.
 */
const names: readonly { readonly text: string; readonly verb: number; readonly senders: number }[] = [
  { text: 'pub', verb: verb.pub, senders: 1 },
  { text: 'msg', verb: verb.msg, senders: 2 },
  { text: 'hpub', verb: verb.hpub, senders: 1 },
  { text: 'hmsg', verb: verb.hmsg, senders: 2 },
  { text: 'ping', verb: verb.ping, senders: 3 },
  { text: 'pong', verb: verb.pong, senders: 3 },
  { text: '+ok', verb: verb.ok, senders: 2 },
  { text: 'sub', verb: verb.sub, senders: 1 },
  { text: 'unsub', verb: verb.unsub, senders: 1 },
  { text: '-err', verb: verb.err, senders: 2 },
  { text: 'info', verb: verb.info, senders: 2 },
  { text: 'connect', verb: verb.connect, senders: 1 },
]

/** More than a server accepts: the default of `max_payload` is 2^20, its recommended maximum 2^26. */
const maxPayload = 2 ** 30
const maxTokens = 5

/** A parsed control line. Reused. */
export class Line {
  verb: number = verb.none
  readonly subject = new ByteRange()
  readonly reply = new ByteRange()
  /** Bytes after the line: of the headers, and including the payload; without the line break after them. */
  headerBytes = 0
  payloadBytes = 0
  /** The rest of the line after the verb. */
  readonly rest = new ByteRange()
  readonly #tokens = Array.from({ length: maxTokens + 1 }, () => new ByteRange())
  #count = 0

  /** Parses `bytes[start, end)`, which has no line break. False if it is not a line of this sender. */
  read(bytes: Buffer, start: number, end: number, fromClient: boolean): boolean {
    this.verb = verbAt(bytes, start, end, fromClient)
    this.subject.clear()
    this.reply.clear()
    this.headerBytes = 0
    this.payloadBytes = 0
    if (this.verb === verb.none) return false
    let at = start
    while (at < end && !isBlank(bytes[at]!)) at++
    this.rest.set(at, end)
    if (this.verb === verb.pub) return this.#readMessage(bytes, 1, 1)
    if (this.verb === verb.hpub) return this.#readMessage(bytes, 1, 2)
    if (this.verb === verb.msg) return this.#readMessage(bytes, 2, 1)
    if (this.verb === verb.hmsg) return this.#readMessage(bytes, 2, 2)
    return true
  }

  get isMessage(): boolean {
    const { verb: is } = this
    return is === verb.pub || is === verb.hpub || is === verb.msg || is === verb.hmsg
  }

  /** `named` tokens, an optional reply subject, and `sizes` numbers. */
  #readMessage(bytes: Buffer, named: number, sizes: number): boolean {
    this.#split(bytes)
    const tokens = this.#tokens
    const count = this.#count
    if (count !== named + sizes && count !== named + sizes + 1) return false
    const total = numberOf(bytes, tokens[count - 1]!)
    const header = sizes === 1 ? 0 : numberOf(bytes, tokens[count - 2]!)
    if (total < 0 || header < 0 || header > total) return false
    const subject = tokens[0]!
    this.subject.set(subject.start, subject.end)
    const reply = tokens[named]!
    if (count > named + sizes) this.reply.set(reply.start, reply.end)
    this.headerBytes = header
    this.payloadBytes = total
    return true
  }

  #split(bytes: Buffer): void {
    const { rest } = this
    const tokens = this.#tokens
    this.#count = 0
    for (let at = rest.start; at < rest.end && this.#count <= maxTokens; ) {
      while (at < rest.end && isBlank(bytes[at]!)) at++
      const start = at
      while (at < rest.end && !isBlank(bytes[at]!)) at++
      if (at > start) tokens[this.#count++]!.set(start, at)
    }
  }
}

/** The verb of a line; `none` if no line of this sender begins that way. */
function verbAt(bytes: Buffer, start: number, end: number, fromClient: boolean): number {
  for (const name of names) {
    const { text, senders } = name
    if ((senders & (fromClient ? 1 : 2)) === 0 || !begins(bytes, start, end, text)) continue
    const behind = start + text.length
    return behind === end || isBlank(bytes[behind]!) ? name.verb : verb.none
  }
  return verb.none
}

/** True if a line of this sender may begin with these bytes, of which more are to come. */
export function mayBegin(bytes: Buffer, start: number, end: number, fromClient: boolean): boolean {
  for (const { text, senders } of names)
    if ((senders & (fromClient ? 1 : 2)) !== 0 && agree(bytes, start, end, text)) return true
  return false
}

function begins(bytes: Buffer, start: number, end: number, name: string): boolean {
  return end - start >= name.length && agree(bytes, start, end, name)
}

/** Compares up to the shorter length. */
function agree(bytes: Buffer, start: number, end: number, name: string): boolean {
  const length = Math.min(name.length, end - start)
  for (let i = 0; i < length; i++) if (lower(bytes[start + i]!) !== name.charCodeAt(i)) return false
  return true
}

/** -1 if it is no number, or too large for a message. */
function numberOf(bytes: Buffer, { start, end }: ByteRange): number {
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return -1
    number = number * 10 + digit
    if (number > maxPayload) return -1
  }
  return end > start ? number : -1
}
