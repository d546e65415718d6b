import type { Family, FamilyType, PageFormat } from './exposition.ts'
import { unescaped } from './key-scanner.ts'

interface Metadata {
  readonly name: string
  /** Undefined if no line declares it. */
  type: FamilyType | undefined
  help: string
  unit: string
}

/** Memory of a family without its strings, which are limited by the page. */
const familyBytes = 300

/** Suffixes of sample names after the name of their family. `_created` is one only in OpenMetrics. */
const suffixes: Readonly<Partial<Record<FamilyType, readonly string[]>>> = {
  counter: ['_total', '_created'],
  histogram: ['_bucket', '_sum', '_count', '_created'],
  gaugehistogram: ['_bucket', '_gsum', '_gcount'],
  summary: ['_sum', '_count', '_created'],
  info: ['_info'],
}

/**
 * Assigns the samples of a page to families. Metadata lines apply to the whole page, wherever they are, and the last
 * one wins, as in Prometheus.
 */
export class PageFamilies {
  readonly #body: Buffer
  readonly #format: PageFormat
  readonly #metadata = new Map<string, Metadata>()
  /** Runs of samples with the same name: the name, and the index of the first sample. */
  readonly #names: string[] = []
  readonly #firsts: number[] = []
  #nameFrom = 0
  #nameTo = 0

  constructor(body: Buffer, format: PageFormat) {
    this.#body = body
    this.#format = format
  }

  /** Approximate memory, in bytes. */
  get bytes(): number {
    return (this.#metadata.size + this.#names.length) * familyBytes
  }

  type(name: string, type: FamilyType): void {
    this.#of(name).type = type
  }

  help(name: string, help: string): void {
    this.#of(name).help = help
  }

  unit(name: string, unit: string): void {
    this.#of(name).unit = unit
  }

  /** Adds the next sample, with the range of its unquoted name in the body. */
  sample(index: number, nameFrom: number, nameTo: number): void {
    if (index > 0 && this.#isSame(nameFrom, nameTo)) return
    this.#nameFrom = nameFrom
    this.#nameTo = nameTo
    this.#names.push(unescaped(this.#body, nameFrom, nameTo))
    this.#firsts.push(index)
  }

  /** Families of all samples, in order. */
  all(samples: number): readonly Family[] {
    const families: Family[] = []
    const found = new Map<string, Metadata>()
    let from = 0
    let of: Metadata | undefined
    for (let i = 0; i < this.#names.length; i++) {
      const name = this.#names[i]!
      let metadata = found.get(name)
      if (metadata === undefined) {
        metadata = this.#covering(name)
        found.set(name, metadata)
      }
      if (metadata === of) continue
      if (of !== undefined) families.push(family(of, from, this.#firsts[i]!))
      of = metadata
      from = this.#firsts[i]!
    }
    if (of !== undefined) families.push(family(of, from, samples))
    return families
  }

  #of(name: string): Metadata {
    let metadata = this.#metadata.get(name)
    if (metadata === undefined) {
      metadata = { name, type: undefined, help: '', unit: '' }
      this.#metadata.set(name, metadata)
    }
    return metadata
  }

  /**
   * A type of the name itself takes precedence, then the family of which the name is a part, then other metadata of the
   * name.
   */
  #covering(name: string): Metadata {
    const own = this.#metadata.get(name)
    if (own?.type !== undefined) return own
    const at = name.lastIndexOf('_')
    const suffix = name.slice(at)
    if (at > 0 && (suffix !== '_created' || this.#format === 'openmetrics')) {
      const family = this.#metadata.get(name.slice(0, at))
      if (family?.type !== undefined && suffixes[family.type]?.includes(suffix)) return family
    }
    return own ?? this.#of(name)
  }

  #isSame(from: number, to: number): boolean {
    const length = to - from
    if (this.#nameTo - this.#nameFrom !== length) return false
    const body = this.#body
    // Names of one family differ at the end, so compare from there.
    for (let i = length - 1, other = this.#nameFrom; i >= 0; i--)
      if (body[from + i] !== body[other + i]) return false
    return true
  }
}

function family({ name, type = 'unknown', help, unit }: Metadata, from: number, to: number): Family {
  return { name, type, help, unit, from, to }
}
