import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'

/** How a destination looks with its variable parts left out. */
export interface Pattern {
  /** The same as the name where nothing of it varies. */
  readonly template: string
  /** Its name was made up by a program, for one conversation. */
  readonly anonymous: boolean
}

/** Where messages go to: an exchange and its routing key, a topic, a subject. */
export class Destination {
  /** As it was written; of an anonymous one the template. */
  readonly name: string
  /** '' where nothing of the name varies. */
  readonly template: string
  readonly anonymous: boolean
  /** The name or the template, to tell spans and series apart; '' where there are too many of them already. */
  readonly label: string
  readonly #names = new Map<string, string>()

  constructor(name: string, { template, anonymous }: Pattern, label: string) {
    this.name = anonymous ? template : name
    this.template = template === name ? '' : template
    this.anonymous = anonymous
    this.label = label
  }

  /** `{operation} {destination}`, the span's name of the messaging conventions. */
  spanName(operation: string): string {
    if (this.label === '') return operation
    let name = this.#names.get(operation)
    if (name === undefined) {
      name = `${operation} ${this.label}`
      this.#names.set(operation, name)
    }
    return name
  }
}

/** Longer names are cut. */
const maxNameBytes = 512
/** So many names and templates tell spans and series apart; it is the first ones, as series once begun go on. */
const maxLabels = 200

/** The destinations of a messaging system, found by their bytes. */
export class Destinations {
  readonly #patternOf: (name: string) => Pattern
  readonly #texts = small(new Interner({ slots: 4_096, maxLength: maxNameBytes }))
  readonly #known = small(new BoundedMap<string, Destination>(4_096))
  readonly #labels = new Set<string>()

  constructor(patternOf: (name: string) => Pattern) {
    this.#patternOf = patternOf
  }

  /** That of `bytes[start, end)`, which are UTF-8. */
  of(bytes: Buffer, start: number, end: number): Destination {
    const cut = Math.min(end, start + maxNameBytes)
    const text = this.#texts.intern(bytes, start, cut)
    const found = this.#known.get(text)
    if (found !== undefined) return found
    const name = utf8Text(bytes, start, cut)
    const pattern = this.#patternOf(name)
    const destination = new Destination(name, pattern, this.#labelOf(pattern.template))
    this.#known.set(text, destination)
    return destination
  }

  #labelOf(template: string): string {
    if (this.#labels.has(template)) return template
    if (this.#labels.size >= maxLabels) return ''
    this.#labels.add(template)
    return template
  }
}

/** Leaves out the parts that look like numbers and identifiers: nothing but digits, or four digits at least. */
export function withoutIdentifiers(name: string, wildcard: string): string {
  return name.replace(/[^./:]+/g, part => (isIdentifier(part) ? wildcard : part))
}

function isIdentifier(part: string): boolean {
  const digits = part.replace(/[^0-9]+/g, '').length
  return digits >= 4 || (digits > 0 && digits === part.length)
}
