import { isUtf8 } from 'node:buffer'
import { decimal } from './scanner.ts'
import { utf8Text } from './utf8-text.ts'

export interface TextFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'untyped' | 'histogram' | 'summary'
  /** Undefined if the text has none. */
  readonly help: string | undefined
  /** All labels of its samples, in ascending order. */
  readonly labels: readonly string[]
  readonly samples: readonly TextSample[]
}

export interface TextSample {
  /** In the order of the family's labels; '' for a missing one. */
  readonly labels: readonly string[]
  /** Unused for histograms and summaries, which have a distribution. */
  readonly value: number
  readonly distribution: TextDistribution | undefined
}

export interface TextDistribution {
  /** Cumulative counts by upper bound, or values by quantile, in ascending order, without +Inf. */
  readonly parts: readonly (readonly [bound: number, value: number])[]
  readonly sum: number
  readonly count: number
}

/** Labels of one family: each of its samples has all of them, so they multiply. */
const mostLabels = 128

/**
 * Parses Prometheus' text format 0.0.4 as strictly as Prometheus does: the last line must end, and no word may follow a
 * value. Families are in the order of their first lines, and have at least one sample. Throws, with the line number, if
 * the text is invalid, has timestamps, or has more than `mostSamples` samples, or as many names that occur only in
 * comments.
 */
export function parseExposition(bytes: Buffer, mostSamples: number): readonly TextFamily[] {
  return new Parser(bytes, mostSamples).parse()
}

interface Building {
  readonly name: string
  type: TextFamily['type'] | undefined
  help: string | undefined
  readonly labels: Set<string>
  readonly samples: BuildingSample[]
  /** Histograms and summaries, by their labels. */
  readonly distributions: Map<string, BuildingSample>
}

interface BuildingSample {
  /** Names and values alternate. */
  readonly labels: readonly string[]
  value: number
  distribution: BuildingDistribution | undefined
}

interface BuildingDistribution {
  readonly parts: Map<number, number>
  sum: number
  count: number | undefined
}

const newline = 10
const space = 32
const tab = 9
const quote = 34
const backslash = 92

const types = new Set<string>(['counter', 'gauge', 'untyped', 'histogram', 'summary'])

class Parser {
  readonly #bytes: Buffer
  readonly #mostSamples: number
  readonly #families = new Map<string, Building>()
  #samples = 0
  #line = 0
  #at = 0
  /** End of the line. */
  #end = 0

  constructor(bytes: Buffer, mostSamples: number) {
    this.#bytes = bytes
    this.#mostSamples = mostSamples
  }

  parse(): readonly TextFamily[] {
    const { length } = this.#bytes
    for (let next = 0; next < length; next = this.#end + 1) {
      this.#line++
      this.#at = next
      const end = this.#bytes.indexOf(newline, next)
      this.#end = end < 0 ? length : end
      this.#skipBlanks()
      if (this.#at === this.#end) continue
      if (end < 0) throw this.#fault('it does not end with a line feed')
      if (this.#bytes[this.#at] === 35) this.#comment()
      else this.#sample()
    }
    return [...this.#families.values()].filter(({ samples }) => samples.length > 0).map(built)
  }

  /** `# HELP name text` and `# TYPE name type`; skips anything else. */
  #comment(): void {
    this.#at++
    this.#skipBlanks()
    const keyword = this.#word()
    if (this.#at === this.#end || (keyword !== 'HELP' && keyword !== 'TYPE')) return
    this.#skipBlanks()
    const name = this.#name(true)
    if (this.#at === this.#end) return
    if (!this.#isBlank()) throw this.#fault(`invalid metric name after ${keyword}`)
    const [family] = this.#family(name)
    this.#skipBlanks()
    if (this.#at === this.#end) return
    const text = this.#bytes.subarray(this.#at, this.#end)
    if (keyword === 'HELP') {
      if (family.help !== undefined) throw this.#fault(`${family.name} has a second HELP`)
      family.help = this.#unescaped(text)
    } else {
      if (family.type !== undefined)
        throw this.#fault(`${family.name} has a second TYPE, or one after its samples`)
      const type = text.toString('latin1').toLowerCase()
      if (!types.has(type)) throw this.#fault(`${JSON.stringify(type.slice(0, 40))} is not a type`)
      family.type = type as TextFamily['type']
    }
  }

  #sample(): void {
    const name = this.#name(true)
    if (name === '') throw this.#fault('it does not begin with a metric name')
    const [family, suffix] = this.#family(name)
    family.type ??= 'untyped'
    if (++this.#samples > this.#mostSamples) throw this.#fault('there are too many samples')
    this.#skipBlanks()
    const special = family.type === 'histogram' ? 'le' : family.type === 'summary' ? 'quantile' : ''
    const [labels, bound] = this.#labels(special)
    for (let i = 0; i < labels.length; i += 2) family.labels.add(labels[i]!)
    if (family.labels.size > mostLabels)
      throw this.#fault(`${family.name} has more than ${mostLabels} labels`)
    const value = this.#number('the value')
    if (special === '') family.samples.push({ labels, value, distribution: undefined })
    else this.#distribute(family, labels, suffix, bound, value)
    if (this.#at === this.#end) return
    this.#skipBlanks()
    if (!/^[-+]?\d+$/.test(this.#word())) throw this.#fault('unexpected text after the value')
    if (this.#at < this.#end) throw this.#fault('unexpected text after the timestamp')
    throw this.#fault('it has a timestamp, which is not supported')
  }

  /** Adds a sample to its histogram or summary. */
  #distribute(
    family: Building,
    labels: readonly string[],
    suffix: string,
    bound: number,
    value: number,
  ): void {
    const key = JSON.stringify(
      [...labels.keys()]
        .filter(i => i % 2 === 0)
        .map(i => [labels[i], labels[i + 1]])
        .sort(),
    )
    let sample = family.distributions.get(key)
    if (sample === undefined) {
      sample = { labels, value: 0, distribution: { parts: new Map(), sum: 0, count: undefined } }
      family.distributions.set(key, sample)
      family.samples.push(sample)
    }
    const distribution = sample.distribution!
    const isCount = suffix === '_count' || (suffix !== '_sum' && family.type === 'histogram')
    if (isCount && value < 0) throw this.#fault('a count is negative')
    const whole = isCount ? Math.trunc(value) : value
    if (suffix === '_count') distribution.count = whole
    else if (suffix === '_sum') distribution.sum = whole
    else if (!Number.isNaN(bound)) distribution.parts.set(bound, whole)
  }

  /** Alternating names and values, and the value of the special label, NaN without one. */
  #labels(special: string): readonly [labels: string[], bound: number] {
    const labels: string[] = []
    let bound = Number.NaN
    if (this.#bytes[this.#at] !== 123) return [labels, bound]
    this.#at++
    for (;;) {
      this.#skipBlanks()
      if (this.#take(125)) break
      const name = this.#name(false)
      if (name === '') throw this.#fault('a label has no name')
      if (name.startsWith('__')) throw this.#fault(`the label ${name} is reserved`)
      this.#skipBlanks()
      if (!this.#take(61)) throw this.#fault(`the label ${name} has no "="`)
      this.#skipBlanks()
      const value = this.#labelValue(name)
      if (name === special) bound = this.#numberOf(value, `the label ${name}`)
      else {
        for (let i = 0; i < labels.length; i += 2)
          if (labels[i] === name) throw this.#fault(`it has the label ${name} twice`)
        if (labels.length >= 2 * mostLabels) throw this.#fault(`it has more than ${mostLabels} labels`)
        labels.push(name, value)
      }
      this.#skipBlanks()
      if (this.#take(44)) continue
      if (this.#take(125)) break
      throw this.#fault(`the label ${name} does not end`)
    }
    this.#skipBlanks()
    return [labels, bound]
  }

  #labelValue(name: string): string {
    if (!this.#take(quote)) throw this.#fault(`the label ${name} has no value in quotes`)
    const start = this.#at
    let hasEscapes = false
    while (this.#at < this.#end && this.#bytes[this.#at] !== quote) {
      const escapes = this.#bytes[this.#at] === backslash
      hasEscapes ||= escapes
      this.#at += escapes ? 2 : 1
    }
    if (this.#at >= this.#end) throw this.#fault(`the value of the label ${name} does not end`)
    const raw = this.#bytes.subarray(start, this.#at++)
    if (!isUtf8(raw)) throw this.#fault(`the value of the label ${name} is not UTF-8`)
    return hasEscapes ? this.#unescaped(raw) : utf8Text(raw, 0, raw.length)
  }

  #unescaped(raw: Buffer): string {
    const text = utf8Text(raw, 0, raw.length)
    if (!text.includes('\\')) return text
    return text.replace(/\\(.?)/gs, (_, escaped: string) => {
      if (escaped === 'n') return '\n'
      if (escaped === '\\' || escaped === '"') return escaped
      throw this.#fault(`\\${escaped} is not an escape sequence`)
    })
  }

  /** The family of a sample with this name, and the name's suffix after the family's. */
  #family(name: string): readonly [family: Building, suffix: string] {
    const known = this.#families.get(name)
    if (known !== undefined) return [known, '']
    const suffix = /(?<=.)_(?:count|sum|bucket)$/.exec(name)?.[0]
    if (suffix !== undefined) {
      const base = this.#families.get(name.slice(0, -suffix.length))
      if (base?.type === 'histogram' || (base?.type === 'summary' && suffix !== '_bucket'))
        return [base, suffix]
    }
    if (this.#families.size >= this.#mostSamples) throw this.#fault('there are too many metrics')
    const family: Building = {
      name,
      type: undefined,
      help: undefined,
      labels: new Set(),
      samples: [],
      distributions: new Map(),
    }
    this.#families.set(name, family)
    return [family, '']
  }

  #number(what: string): number {
    return this.#numberOf(this.#word(), what)
  }

  #numberOf(text: string, what: string): number {
    const value = decimal(text)
    if (Number.isFinite(value)) return value
    if (/^nan$/i.test(text)) return Number.NaN
    const infinite = /^([-+]?)inf(?:inity)?$/i.exec(text)
    if (infinite === null) throw this.#fault(`${what} is not a number: ${JSON.stringify(text.slice(0, 40))}`)
    return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }

  /** Up to the next blank. */
  #word(): string {
    const start = this.#at
    while (this.#at < this.#end && !this.#isBlank()) this.#at++
    return this.#bytes.toString('latin1', start, this.#at)
  }

  /** A metric name, or a label name, which has no colons; '' if there is none. */
  #name(withColons: boolean): string {
    const start = this.#at
    for (; this.#at < this.#end; this.#at++) {
      const byte = this.#bytes[this.#at]!
      const isLetter = (byte | 32) >= 97 && (byte | 32) <= 122
      const isDigit = byte >= 48 && byte <= 57
      if (!(isLetter || byte === 95 || (withColons && byte === 58) || (isDigit && this.#at > start))) break
    }
    return this.#bytes.toString('latin1', start, this.#at)
  }

  #take(byte: number): boolean {
    if (this.#at >= this.#end || this.#bytes[this.#at] !== byte) return false
    this.#at++
    return true
  }

  #isBlank(): boolean {
    const byte = this.#bytes[this.#at]
    return byte === space || byte === tab
  }

  #skipBlanks(): void {
    while (this.#at < this.#end && this.#isBlank()) this.#at++
  }

  #fault(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`)
  }
}

function built({ name, type = 'untyped', help, labels, samples }: Building): TextFamily {
  const names = [...labels].sort()
  return {
    name,
    type,
    help,
    labels: names,
    samples: samples.map(({ labels, value, distribution }) => ({
      labels: names.map(name => labelValue(labels, name)),
      value,
      distribution: distribution && builtDistribution(type === 'histogram', distribution),
    })),
  }
}

function builtDistribution(
  isHistogram: boolean,
  { parts, sum, count }: BuildingDistribution,
): TextDistribution {
  const last = isHistogram ? parts.get(Number.POSITIVE_INFINITY) : undefined
  return {
    parts: [...parts]
      .filter(([bound]) => !isHistogram || bound !== Number.POSITIVE_INFINITY)
      .sort(([a], [b]) => a - b),
    sum,
    // Without another count, the last bucket has all.
    count: count ?? last ?? 0,
  }
}

function labelValue(labels: readonly string[], name: string): string {
  for (let i = 0; i < labels.length; i += 2) if (labels[i] === name) return labels[i + 1]!
  return ''
}
