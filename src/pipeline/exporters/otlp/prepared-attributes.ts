import { ownText } from '../../../foundation/lib/own-text.ts'
import { fieldKey, PreparedField, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type { AttributeValue } from '../../../foundation/model/attributes.ts'

const keyValueKey = fieldKey(1, WireType.bytes)

/** Names seen first. Nearly all are from the semantic conventions; others are encoded each time, which is slower. */
const maxNames = 1024
const maxNameLength = 64
const maxPlaces = 64
/** Of one name. */
const maxValues = 32
const maxValueLength = 64
/** Of all values, as they are counted. */
const maxBytes = 512 * 1024
/** Of a name or value, besides its bytes and its text: objects and entries of maps. */
const entryBytes = 320
/** Number of new values after which it is decided whether the values of a name recur. */
const trial = 1024
/** Trials without preparing after one in which most values were new. */
const pause = 16

/** A value with its attribute. `own`: a copy, not a part of a larger text. */
interface KnownValue {
  readonly own: AttributeValue
  readonly field: PreparedField
}

/** An attribute name, encoded once, and whole attributes for values of it that recur. */
class KnownName {
  readonly name: string
  readonly field: PreparedField
  /** Undefined while values of this name are not prepared: most of them are new. */
  values: Map<AttributeValue, KnownValue> | undefined = new Map()
  hits = 0
  /** New values until the next decision. */
  left = trial
  /** The value that was used last. */
  #last: KnownValue | undefined

  constructor(name: string) {
    this.name = name
    this.field = PreparedField.text(keyValueKey, name)
  }

  fieldOf(value: AttributeValue): PreparedField | undefined {
    const last = this.#last
    if (last !== undefined && last.own === value) return last.field
    const known = this.values?.get(value)
    if (known === undefined) return undefined
    this.#last = known
    return known.field
  }

  /** Stops preparing values. */
  forget(): void {
    this.values = undefined
    this.#last = undefined
  }
}

/**
 * Encoded attributes (KeyValue, common.proto) for those that recur, such as a method, a route or a port: copying them is
 * cheaper than encoding them again.
 */
export class PreparedAttributes {
  readonly #names = new Map<string, KnownName>()
  /** By place in a set: most sets have the same names in the same order as the one before. */
  readonly #recent: (KnownName | undefined)[] = []
  #bytes = 0

  /** Memory of names and values, about. */
  get bytes(): number {
    return this.#bytes
  }

  /** `place`: in its set of attributes. */
  name(place: number, name: string): KnownName | undefined {
    const recent = this.#recent[place]
    if (recent !== undefined && recent.name === name) return recent
    const known = this.#names.get(name)
    if (place < maxPlaces) this.#recent[place] = known
    return known
  }

  /** Prepares a name that was encoded now. */
  addName(name: string): void {
    if (this.#names.size >= maxNames || name.length > maxNameLength) return
    const own = ownText(name, 3 * maxNameLength)
    if (own !== name) return // a lone surrogate has no UTF-8
    this.#names.set(own, new KnownName(own))
    this.#bytes += entryBytes + 3 * own.length
  }

  /** Takes note of a value that is not prepared and was encoded in `out` from `start` on, behind the field's key. */
  addValue(known: KnownName, value: AttributeValue, out: Writer, start: number): void {
    if (--known.left <= 0) this.#decide(known)
    const { values } = known
    if (values === undefined || values.size >= maxValues || this.#bytes > maxBytes) return
    if (typeof value === 'object') return
    if (typeof value === 'string' && value.length > maxValueLength) return
    const own = typeof value === 'string' ? ownText(value, 3 * maxValueLength) : value
    if (typeof value === 'string' && own !== value) return
    const field = new PreparedField(out.written().subarray(start))
    values.set(own, { own, field })
    this.#bytes += costOf(field)
  }

  /** Forgets all of them. */
  shed(bytes: number): number {
    const freed = this.#bytes
    if (bytes <= 0) return 0
    this.#names.clear()
    this.#recent.length = 0
    this.#bytes = 0
    return freed
  }

  /** Enough values were new: were more known? */
  #decide(known: KnownName): void {
    const { values, hits } = known
    known.hits = 0
    known.left = trial
    if (values === undefined) {
      known.values = new Map()
      return
    }
    if (hits >= trial) return
    for (const { field } of values.values()) this.#bytes -= costOf(field)
    known.forget()
    known.left = pause * trial
  }
}

function costOf({ length }: PreparedField): number {
  return entryBytes + 2 * length
}
