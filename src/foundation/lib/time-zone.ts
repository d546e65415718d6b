/** A time zone at one moment. */
export interface ZoneTime {
  /** Its abbreviation: `CEST`, `-03`. */
  readonly name: string
  /** Ahead of UTC. */
  readonly offsetSeconds: number
}

interface Zone {
  /** Seconds since 1970, ascending. */
  readonly changes: readonly number[]
  /** For each change, the index of the type that begins. */
  readonly begins: readonly number[]
  readonly types: readonly ZoneTime[]
  /** Applies after the last change. */
  readonly rule: Rule | undefined
}

/** Local time of a place, from a file of the zoneinfo database (RFC 9636). */
export class TimeZone {
  static readonly utc = new TimeZone({
    changes: [],
    begins: [],
    types: [{ name: 'UTC', offsetSeconds: 0 }],
    rule: undefined,
  })

  readonly #zone: Zone

  private constructor(zone: Zone) {
    this.#zone = zone
  }

  /** Throws if the bytes are not such a file. */
  static parse(bytes: Buffer): TimeZone {
    try {
      const old = new Block(bytes, 0, 4)
      if (old.version === 0) return new TimeZone(old.zone(undefined))
      const block = new Block(bytes, old.end, 8)
      const footer = /^\n([^\n]*)\n/.exec(bytes.toString('latin1', block.end))?.[1]
      return new TimeZone(block.zone(footer === undefined || footer === '' ? undefined : parseRule(footer)))
    } catch (error) {
      throw new Error('not a file of the zoneinfo database', { cause: error })
    }
  }

  /** The zone at a time in seconds since 1970. */
  at(seconds: number): ZoneTime {
    const { changes, begins, types, rule } = this.#zone
    if (rule !== undefined && (changes.length === 0 || seconds >= changes.at(-1)!))
      return ruleAt(rule, seconds)
    let low = 0
    let high = changes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (changes[middle]! <= seconds) low = middle + 1
      else high = middle
    }
    return types[low === 0 ? 0 : begins[low - 1]!]!
  }
}

const headerBytes = 44
/** Types are indexed by one byte, and so are their names (RFC 9636, section 3.2). */
const mostTypes = 256
/** Names are short, with at least three characters. */
const namePattern = /^[A-Za-z0-9+-]{3,32}$/
/** "More than -25 hours and less than 26." */
const mostOffset = 26 * 3600
const mostFooter = 256

/** Header and data of one version, whose times have 4 or 8 bytes. All sizes are checked before anything is read. */
class Block {
  readonly version: number
  readonly end: number
  readonly #bytes: Buffer
  readonly #data: number
  readonly #timeBytes: number
  readonly #times: number
  readonly #types: number
  readonly #characters: number

  constructor(bytes: Buffer, at: number, timeBytes: number) {
    if (bytes.toString('latin1', at, at + 4) !== 'TZif') throw new Error('no header')
    const count = (i: number) => bytes.readUInt32BE(at + 20 + i * 4)
    this.version = bytes.readUInt8(at + 4)
    this.#bytes = bytes
    this.#data = at + headerBytes
    this.#timeBytes = timeBytes
    this.#times = count(3)
    this.#types = count(4)
    this.#characters = count(5)
    this.end =
      this.#data +
      this.#times * (timeBytes + 1) +
      this.#types * 6 +
      this.#characters +
      count(2) * (timeBytes + 4) +
      count(1) +
      count(0)
    if (this.#types === 0 || this.#types > mostTypes) throw new Error('no types, or too many')
    if (this.end > bytes.length) throw new Error('too short')
  }

  zone(rule: Rule | undefined): Zone {
    const bytes = this.#bytes
    const indexesAt = this.#data + this.#times * this.#timeBytes
    const typesAt = indexesAt + this.#times
    const names = typesAt + this.#types * 6
    const all = (length: number, read: (i: number) => number) => Array.from({ length }, (_, i) => read(i))
    const changes = all(this.#times, i =>
      this.#timeBytes === 8
        ? Number(bytes.readBigInt64BE(this.#data + i * 8))
        : bytes.readInt32BE(this.#data + i * 4),
    )
    if (changes.some((change, i) => i > 0 && change <= changes[i - 1]!)) throw new Error('out of order')
    const texts = bytes.toString('latin1', names, names + this.#characters)
    const types = all(this.#types, i => typesAt + i * 6).map(at => {
      const start = bytes.readUInt8(at + 5)
      const end = texts.indexOf('\0', start)
      if (end < 0) throw new Error('no name')
      return zoneTime(texts.slice(start, end), bytes.readInt32BE(at))
    })
    const begins = all(this.#times, i => bytes.readUInt8(indexesAt + i))
    if (begins.some(index => index >= types.length)) throw new Error('no such type')
    return { changes, begins, types, rule }
  }
}

function zoneTime(name: string, offsetSeconds: number): ZoneTime {
  if (!namePattern.test(name)) throw new Error('no name')
  if (Math.abs(offsetSeconds) >= mostOffset) throw new Error('no offset')
  return { name, offsetSeconds }
}

/** A POSIX TZ string (Base Definitions, section 8.3). Without `summer` it is always `standard`. */
interface Rule {
  readonly standard: ZoneTime
  readonly summer?: { readonly time: ZoneTime; readonly begins: YearTime; readonly ends: YearTime }
}

/** A yearly transition, in the local time before it. */
interface YearTime {
  /** Days since January 1. */
  dayOf(year: number): number
  readonly seconds: number
}

const name = '([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)'
const clock = '([+-]?\\d{1,3}(?::\\d\\d?){0,2})'
const day = '(J?\\d{1,3}|M(?:[1-9]|1[0-2])\\.[1-5]\\.[0-6])'
const rulePattern = new RegExp(
  `^${name}${clock}(?:${name}${clock}?(?:,${day}(?:/${clock})?,${day}(?:/${clock})?)?)?$`,
)
const hour = 3600

function parseRule(text: string): Rule {
  const parts = text.length > mostFooter ? null : rulePattern.exec(text)
  if (parts === null) throw new Error('no rule')
  const [, standardName, standardOffset, summerName, summerOffset, begins, beginsAt, ends, endsAt] = parts
  const time = (word: string, offsetSeconds: number) => zoneTime(word.replace(/[<>]/g, ''), offsetSeconds)
  // POSIX counts westward.
  const standard = time(standardName!, 0 - clockSeconds(standardOffset!))
  if (summerName === undefined) return { standard }
  const ahead = summerOffset === undefined ? standard.offsetSeconds + hour : 0 - clockSeconds(summerOffset)
  const moment = (text: string, at = '2') => ({ dayOf: dayRule(text), seconds: clockSeconds(at) })
  return {
    standard,
    summer: {
      time: time(summerName, ahead),
      begins: moment(begins ?? 'M3.2.0', beginsAt),
      ends: moment(ends ?? 'M11.1.0', endsAt),
    },
  }
}

function clockSeconds(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.replace(/^[+-]/, '').split(':').map(Number)
  return (text.startsWith('-') ? -1 : 1) * (hours * hour + minutes * 60 + seconds)
}

function dayRule(text: string): (year: number) => number {
  const numbers = text.replace(/^[JM]/, '').split('.').map(Number)
  const [first = 0, week = 0, weekday = 0] = numbers
  if (first > 365 || (first === 0 && text.startsWith('J'))) throw new Error('no day of a year')
  if (text.startsWith('M')) return year => dayOfWeek(year, first, week, weekday)
  // J60 is March 1 in all years.
  if (text.startsWith('J')) return year => first - (isLeap(year) && first >= 60 ? 0 : 1)
  return () => first
}

/** The nth (5: last) weekday (0: Sunday) of a month (from 1). */
function dayOfWeek(year: number, month: number, week: number, weekday: number): number {
  const start = Date.UTC(year, month - 1, 1)
  const days = (Date.UTC(year, month, 1) - start) / 86_400_000
  let date = 1 + ((weekday - new Date(start).getUTCDay() + 7) % 7) + 7 * (week - 1)
  if (date > days) date -= 7
  return (start - Date.UTC(year, 0, 1)) / 86_400_000 + date - 1
}

function isLeap(year: number): boolean {
  return Date.UTC(year, 2, 1) - Date.UTC(year, 1, 1) > 28 * 86_400_000
}

function ruleAt({ standard, summer }: Rule, seconds: number): ZoneTime {
  if (summer === undefined) return standard
  const year = new Date((seconds + standard.offsetSeconds) * 1000).getUTCFullYear()
  const moment = ({ dayOf, seconds: at }: YearTime, before: ZoneTime) =>
    Date.UTC(year, 0, 1) / 1000 + dayOf(year) * 86_400 + at - before.offsetSeconds
  const begins = moment(summer.begins, standard)
  const ends = moment(summer.ends, summer.time)
  // In the southern hemisphere summer spans the new year.
  const isSummer = begins < ends ? seconds >= begins && seconds < ends : seconds >= begins || seconds < ends
  return isSummer ? summer.time : standard
}
