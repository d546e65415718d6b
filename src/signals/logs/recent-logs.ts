import type { AttributeValue } from '../../foundation/model/attributes.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { LogSearchQuery, RecentLog, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { BodyText } from './body-text.ts'
import { LogSearch } from './log-search.ts'

/** Maximum body length, in bytes of UTF-8. */
const mostBodyBytes = 4096
/** Maximum length of `container.id` from the record itself. */
const mostContainerBytes = 64
/** Maximum length of a service name, in UTF-16 units. */
const mostNameLength = 255
/** Maximum bytes of bodies in an answer, which is made in one step. */
const mostAnswerBytes = 1024 * 1024
/** Maximum memory of an origin with its texts, in bytes. */
const originBytes = 1024
/** Minimum memory, in bytes. */
const leastBytes = 256 * 1024
/** Minimum number of origins: those that write at the same time. */
const leastOrigins = 64
/** Records, or bytes of bodies, between two checks of the time. */
const stride = 64
const strideBytes = 16 * 1024
/** Records without a time of their own may be this late, in microseconds, as files are read a few times per second. */
const lateUs = 1_000_000

// A record in the ring, aligned to 8 bytes: its length in the first and in the last 4 bytes, so that it can be walked in
// both directions, and between them, in units of 4 bytes:
const originAt = 1
const pidAt = 2
/** Severity in the lower 8 bits, then the flags. */
const flagsAt = 3
const timeAt = 4
const traceAt = 6
const spanAt = 10
/** Bytes of the body, and of the container's id above 16 bits. */
const textAt = 12
const headBytes = 52
const tailBytes = 4
const leastLength = headBytes + tailBytes

const hasTrace = 1 << 8
const hasSpan = 1 << 9
/** Flag of a record without a time of its own. */
const isObserved = 1 << 10
/** Flag of a filler at the end of the ring. */
const isFiller = 1 << 11

/** Data shared by records of one resource. */
interface Origin {
  service: string
  containerId: string
  pid: number
  /** Index in the list; -1 if no record needs it. */
  number: number
  records: number
}

/** A query prepared for comparisons. */
interface Wanted {
  readonly query: RecentLogQuery
  readonly trace: Uint32Array | undefined
  readonly span: Uint32Array | undefined
  readonly ofOrigin: boolean
  readonly ofTime: boolean
  readonly text: BodyText | undefined
}

/**
 * The latest log records within a fixed number of bytes; the oldest are dropped first. All data is copied, so no
 * record or resource is retained.
 */
export class RecentLogs {
  readonly #ring: Buffer
  readonly #words: Uint32Array
  readonly #doubles: Float64Array
  readonly #capacity: number
  readonly #byResource = new WeakMap<Resource, Origin>()
  readonly #origins: (Origin | undefined)[] = []
  readonly #freeOrigins: number[] = []
  readonly #mostOrigins: number
  /** Total bytes written before the oldest record, and before the next one. */
  #oldest = 0
  #next = 0
  #records = 0
  /** Total number of added records. */
  #added = 0

  /** Uses at most `maxBytes`, but at least 256 KiB. An eighth of it is for data shared by records. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    const bytes = Math.max(leastBytes, maxBytes)
    this.#mostOrigins = Math.max(leastOrigins, Math.floor(bytes / 8 / originBytes))
    this.#capacity = (bytes - this.#mostOrigins * originBytes) & ~7
    const memory = new ArrayBuffer(this.#capacity)
    this.#ring = Buffer.from(memory)
    this.#words = new Uint32Array(memory)
    this.#doubles = new Float64Array(memory)
  }

  /** Number of records. */
  get size(): number {
    return this.#records
  }

  /** Size of the ring, in bytes. */
  get bytes(): number {
    return this.#next - this.#oldest
  }

  /** Number of the oldest record, or of the next one if there is none. */
  get firstId(): number {
    return this.#added - this.#records + 1
  }

  /** Number of the newest record; 0 before the first. */
  get lastId(): number {
    return this.#added
  }

  /** Services with records, sorted. */
  services(): string[] {
    const names = new Set<string>()
    for (const origin of this.#origins)
      if (origin !== undefined && origin.service !== '') names.add(origin.service)
    return [...names].sort()
  }

  add(resource: Resource, record: LogRecord): void {
    const { attributes, body } = record
    const container = attributes.size > 0 ? attributes.get('container.id') : undefined
    const containerId = typeof container === 'string' ? container : ''
    const room =
      headBytes +
      tailBytes +
      Math.min(body.length * 3, mostBodyBytes) +
      Math.min(containerId.length * 3, mostContainerBytes)
    this.#makeRoom((room + 7) & ~7)
    const origin = this.#originOf(resource)
    const at = this.#next % this.#capacity
    const from = at + headBytes
    const bodyBytes = body === '' ? 0 : this.#ring.write(body, from, mostBodyBytes, 'utf8')
    const containerBytes =
      containerId === '' ? 0 : this.#ring.write(containerId, from + bodyBytes, mostContainerBytes, 'utf8')
    const length = (headBytes + bodyBytes + containerBytes + tailBytes + 7) & ~7
    const word = at >> 2
    const words = this.#words
    const pid = attributes.size > 0 ? attributes.get('process.pid') : undefined
    words[word + originAt] = origin.number
    words[word + pidAt] = typeof pid === 'number' ? pid : origin.pid
    words[word + flagsAt] =
      (record.severity & 0xff) |
      (record.timeUs === 0 ? isObserved : 0) |
      (copyId(record.traceId, this.#ring, at + traceAt * 4) ? hasTrace : 0) |
      (copyId(record.spanId, this.#ring, at + spanAt * 4) ? hasSpan : 0)
    this.#doubles[(word + timeAt) >> 1] = record.timeUs || record.observedUs
    words[word + textAt] = bodyBytes | (containerBytes << 16)
    this.#close(at, length)
    origin.records++
    this.#records++
    this.#added++
  }

  /** Newest matching records, the newest first: at most `limit`, and at most 1 MiB of bodies. */
  find(query: RecentLogQuery): RecentLog[] {
    const wanted = wantedOf(query)
    const found: RecentLog[] = []
    let bytes = 0
    for (let end = this.#next; end > this.#oldest && found.length < query.limit; ) {
      const length = this.#words[((end - 1) % this.#capacity) >> 2]!
      end -= length
      const at = end % this.#capacity
      if (this.#isFiller(at) || !this.#matches(at, wanted)) continue
      bytes += this.#words[(at >> 2) + textAt]! & 0xffff
      if (bytes > mostAnswerBytes) break
      found.push(this.#recordAt(at))
    }
    return found
  }

  /** Starts a search of the current records, which the caller continues. */
  search(query: LogSearchQuery): LogSearch {
    const wanted = wantedOf(query)
    const { afterId = 0, limit } = query
    let end = this.#next
    let id = this.#added
    let bytes = 0
    return new LogSearch(query, (search, untilMs) => {
      let work = 0
      while (end > this.#oldest && id > afterId) {
        const length = this.#words[((end - 1) % this.#capacity) >> 2]!
        work += 1 / stride + (wanted.text === undefined ? 0 : length / strideBytes)
        if (work > 1) {
          if (performance.now() > untilMs) return false
          work = 0
        }
        end -= length
        const at = end % this.#capacity
        if (this.#isFiller(at)) continue
        const own = id--
        if (!this.#matches(at, wanted)) continue
        const word = at >> 2
        search.count(this.#words[word + flagsAt]! & 0xff, this.#doubles[(word + timeAt) >> 1]!)
        if (search.found.length >= limit || bytes > mostAnswerBytes) continue
        bytes += this.#words[word + textAt]! & 0xffff
        if (bytes <= mostAnswerBytes) search.found.push({ id: own, ...this.#recordAt(at) })
      }
      return true
    })
  }

  #isFiller(at: number): boolean {
    const word = at >> 2
    return this.#words[word]! < leastLength || (this.#words[word + flagsAt]! & isFiller) !== 0
  }

  #matches(at: number, wanted: Wanted): boolean {
    return this.#isWanted(at, wanted) && (wanted.text === undefined || this.#says(at, wanted.text))
  }

  #says(at: number, text: BodyText): boolean {
    const from = at + headBytes
    return text.isIn(this.#ring, from, from + (this.#words[(at >> 2) + textAt]! & 0xffff))
  }

  #isWanted(at: number, { query, trace, span, ofOrigin, ofTime }: Wanted): boolean {
    const words = this.#words
    const word = at >> 2
    const flags = words[word + flagsAt]!
    if ((flags & 0xff) < (query.minSeverity ?? 0)) return false
    const origin = this.#origins[words[word + originAt]!]!
    if (query.service !== undefined && origin.service !== query.service) return false
    if (trace && (flags & hasTrace) !== 0) {
      if (!isSame(words, word + traceAt, trace)) return false
      return span === undefined || (flags & hasSpan) === 0 || isSame(words, word + spanAt, span)
    }
    if (trace && !(ofOrigin && ofTime)) return false
    if (!trace && span && !((flags & hasSpan) !== 0 && isSame(words, word + spanAt, span))) return false
    return this.#isWithin(word, query) && (!ofOrigin || this.#isOf(at, origin, query))
  }

  #isWithin(word: number, { fromUs, toUs }: RecentLogQuery): boolean {
    const timeUs = this.#doubles[(word + timeAt) >> 1]!
    if (fromUs !== undefined && timeUs < fromUs) return false
    if (toUs === undefined) return true
    return timeUs <= ((this.#words[word + flagsAt]! & isObserved) === 0 ? toUs : toUs + lateUs)
  }

  #isOf(at: number, origin: Origin, { pid, containerId }: RecentLogQuery): boolean {
    const own = this.#words[(at >> 2) + pidAt]!
    if (pid !== undefined && (own !== 0 || containerId === undefined)) return own === pid
    return this.#containerAt(at, origin) === containerId
  }

  #recordAt(at: number): RecentLog {
    const words = this.#words
    const word = at >> 2
    const flags = words[word + flagsAt]!
    const origin = this.#origins[words[word + originAt]!]!
    const body = at + headBytes
    const hex = (from: number, bytes: number) => this.#ring.toString('hex', from, from + bytes)
    return {
      timeUs: this.#doubles[(word + timeAt) >> 1]!,
      severity: flags & 0xff,
      body: this.#ring.toString('utf8', body, body + (words[word + textAt]! & 0xffff)),
      traceId: (flags & hasTrace) === 0 ? '' : hex(at + traceAt * 4, 16),
      spanId: (flags & hasSpan) === 0 ? '' : hex(at + spanAt * 4, 8),
      pid: words[word + pidAt]!,
      containerId: this.#containerAt(at, origin),
      service: origin.service,
    }
  }

  #containerAt(at: number, origin: Origin): string {
    const text = this.#words[(at >> 2) + textAt]!
    if (text >>> 16 === 0) return origin.containerId
    const from = at + headBytes + (text & 0xffff)
    return this.#ring.toString('utf8', from, from + (text >>> 16))
  }

  #originOf(resource: Resource): Origin {
    const known = this.#byResource.get(resource)
    if (known !== undefined && known.number >= 0) return known
    while (this.#freeOrigins.length === 0 && this.#origins.length >= this.#mostOrigins) this.#dropOldest()
    const { attributes } = resource
    const pid = attributes.get('process.pid')
    const origin = known ?? {
      service: textOf(attributes.get('service.name'), mostNameLength),
      containerId: textOf(attributes.get('container.id'), mostContainerBytes),
      pid: typeof pid === 'number' ? pid : 0,
      number: 0,
      records: 0,
    }
    origin.number = this.#freeOrigins.pop() ?? this.#origins.length
    this.#origins[origin.number] = origin
    this.#byResource.set(resource, origin)
    return origin
  }

  /** Drops the oldest records until so many contiguous bytes are free. */
  #makeRoom(bytes: number): void {
    const left = this.#capacity - (this.#next % this.#capacity)
    if (left < bytes) {
      this.#free(left)
      const at = this.#next % this.#capacity
      this.#close(at, left)
      // A filler too short for flags is recognised by its length.
      if (left >= leastLength) this.#words[(at >> 2) + flagsAt] = isFiller
    }
    this.#free(bytes)
  }

  #free(bytes: number): void {
    while (this.#next + bytes - this.#oldest > this.#capacity) this.#dropOldest()
  }

  #close(at: number, length: number): void {
    this.#words[at >> 2] = length
    this.#words[(at + length - tailBytes) >> 2] = length
    this.#next += length
  }

  #dropOldest(): void {
    const at = this.#oldest % this.#capacity
    const word = at >> 2
    this.#oldest += this.#words[word]!
    if (this.#isFiller(at)) return
    this.#records--
    const number = this.#words[word + originAt]!
    const origin = this.#origins[number]!
    if (--origin.records > 0) return
    origin.number = -1
    this.#origins[number] = undefined
    this.#freeOrigins.push(number)
  }
}

function wantedOf(query: RecentLogQuery): Wanted {
  const { traceId, spanId, pid, containerId, fromUs, toUs, text } = query
  return {
    query,
    trace: traceId === undefined ? undefined : wordsOf(traceId, 16),
    span: spanId === undefined ? undefined : wordsOf(spanId, 8),
    ofOrigin: pid !== undefined || containerId !== undefined,
    ofTime: fromUs !== undefined && toUs !== undefined,
    text: text === undefined || text === '' ? undefined : new BodyText(text),
  }
}

/** ID in the form of the ring. */
function wordsOf(hex: string, bytes: number): Uint32Array {
  const id = new Uint8Array(bytes)
  id.set(Buffer.from(hex, 'hex').subarray(0, bytes))
  return new Uint32Array(id.buffer)
}

function isSame(words: Uint32Array, at: number, wanted: Uint32Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (words[at + i] !== wanted[i]) return false
  return true
}

/** Copies an ID. False, without a copy, if it is all zero. */
function copyId(id: Uint8Array, into: Uint8Array, at: number): boolean {
  let bits = 0
  for (let i = 0; i < id.length; i++) bits |= id[i]!
  if (bits === 0) return false
  for (let i = 0; i < id.length; i++) into[at + i] = id[i]!
  return true
}

/** Copy of a text: a substring would keep the whole text in memory. */
function textOf(value: AttributeValue | undefined, mostLength: number): string {
  if (typeof value !== 'string') return ''
  return value.length <= mostLength ? value : Buffer.from(value.slice(0, mostLength)).toString()
}
