// A strict reader of metrics pages: the Prometheus text format 0.0.4 and OpenMetrics 1.0. What a lenient reader lets
// pass (families in pieces, series twice, buckets that fall) is an error here, with its line.

export type ExpositionFormat = 'text' | 'openmetrics'
export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped' | 'unknown'
export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly name: string
  readonly labels: Labels
  readonly value: number
  /** Name and labels in order: the same in both formats and in every page. */
  readonly key: string
}

export interface Family {
  /** As the text format has it: that of a counter ends in `_total`. */
  readonly name: string
  readonly type: FamilyType
  readonly help: string
  readonly samples: readonly Sample[]
}

/** A page that was read. */
export class Exposition {
  readonly families: ReadonlyMap<string, Family>

  constructor(families: ReadonlyMap<string, Family>) {
    this.families = families
  }

  /** The sum over the series of a family, those whose labels have these values. */
  sum(family: string, labels: Labels = {}): number {
    let sum = 0
    for (const sample of this.families.get(family)?.samples ?? [])
      if (Object.entries(labels).every(([name, value]) => sample.labels[name] === value)) sum += sample.value
    return sum
  }

  /** The values that a label has in a family. */
  values(family: string, label: string): string[] {
    const samples = this.families.get(family)?.samples ?? []
    return [...new Set(samples.map(({ labels }) => labels[label] ?? ''))]
  }
}

interface Draft {
  readonly name: string
  type: FamilyType | undefined
  help: string | undefined
  readonly samples: Sample[]
}

/** Reads a page. Throws an Error that names the line where it is not what the format demands. */
export function parseExposition(text: string, format: ExpositionFormat): Exposition {
  return new Parser(format).read(text)
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const labelName = /[a-zA-Z_][a-zA-Z0-9_]*/y
const number = /^(?:NaN|\+Inf|-Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/
const types: Readonly<Record<ExpositionFormat, readonly string[]>> = {
  text: ['counter', 'gauge', 'histogram', 'summary', 'untyped'],
  openmetrics: ['counter', 'gauge', 'histogram', 'summary', 'unknown'],
}
/** What the names of samples have behind the family's. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
}

class Parser {
  readonly #format: ExpositionFormat
  readonly #families = new Map<string, Draft>()
  readonly #keys = new Set<string>()
  #current: Draft | undefined
  #line = 0

  constructor(format: ExpositionFormat) {
    this.#format = format
  }

  read(text: string): Exposition {
    if (text.includes('\r')) this.#fail('a carriage return')
    const lines = text.split('\n')
    if (lines.pop() !== '') this.#fail('the page does not end with its last line')
    if (this.#format === 'openmetrics' && lines.pop() !== '# EOF')
      this.#fail('the page does not end in # EOF')
    for (const line of lines) {
      this.#line++
      if (line.startsWith('# HELP ') || line.startsWith('# TYPE ')) this.#describe(line)
      else if (line.startsWith('#')) this.#fail('a comment that says nothing')
      else this.#take(line)
    }
    const families = new Map<string, Family>()
    for (const draft of this.#families.values()) {
      const { type, help, samples } = draft
      if (type === undefined || help === undefined || help === '')
        this.#fail(`${draft.name} lacks HELP or TYPE`)
      if (type === 'histogram') this.#checkHistogram(draft)
      if (type === 'summary') this.#checkSummary(draft)
      const counter = this.#format === 'openmetrics' && type === 'counter'
      const name = counter ? `${draft.name}_total` : draft.name
      families.set(name, { name, type, help, samples })
    }
    return new Exposition(families)
  }

  #describe(line: string): void {
    const kind = line.slice(2, 6)
    const space = line.indexOf(' ', 7)
    if (space < 0) this.#fail('a description of nothing')
    const name = line.slice(7, space)
    const rest = line.slice(space + 1)
    if (!metricName.test(name)) this.#fail(`"${name}" is no name`)
    if (this.#current?.name !== name) {
      if (this.#families.has(name)) this.#fail(`${name} stands in two places`)
      this.#current = { name, type: undefined, help: undefined, samples: [] }
      this.#families.set(name, this.#current)
    }
    if (this.#current.samples.length > 0) this.#fail(`${name} is described after its first sample`)
    if (kind === 'TYPE') {
      if (this.#current.type !== undefined) this.#fail(`${name} has two types`)
      if (!types[this.#format].includes(rest)) this.#fail(`"${rest}" is no type`)
      this.#current.type = rest as FamilyType
    } else {
      if (this.#current.help !== undefined) this.#fail(`${name} has two helps`)
      this.#current.help = this.#unescape(rest, this.#format === 'openmetrics')
    }
  }

  #take(line: string): void {
    const family = this.#current
    const end = line.search(/[{ ]/)
    const name = line.slice(0, end)
    if (end < 1 || !metricName.test(name)) this.#fail(`"${line}" is no sample`)
    if (family?.type === undefined) this.#fail(`${name} has no type`)
    const labels: Record<string, string> = {}
    const at = line[end] === '{' ? this.#labels(line, end + 1, labels) : end
    if (line[at] !== ' ') this.#fail('no space before the value')
    const written = line.slice(at + 1)
    if (!number.test(written)) this.#fail(`"${written}" is no value`)
    const value = Number(written.replace('Inf', 'Infinity'))
    this.#checkSample(family, name, labels, value)
    const pairs = Object.keys(labels)
      .sort()
      .map(label => `${label}=${JSON.stringify(labels[label])}`)
    const key = `${name}{${pairs.join(',')}}`
    if (this.#keys.has(key)) this.#fail(`${key} stands there twice`)
    this.#keys.add(key)
    family.samples.push({ name, labels, value, key })
  }

  /** Reads labels from behind the brace on. Returns where the closing one ends. */
  #labels(line: string, from: number, labels: Record<string, string>): number {
    let at = from
    for (;;) {
      labelName.lastIndex = at
      const name = labelName.exec(line)?.[0]
      if (name === undefined) this.#fail('a label without a name')
      if (Object.hasOwn(labels, name)) this.#fail(`the label ${name} stands there twice`)
      at += name.length
      if (line.slice(at, at + 2) !== '="') this.#fail(`the label ${name} has no value`)
      at += 2
      const start = at
      while (at < line.length && line[at] !== '"') at += line[at] === '\\' ? 2 : 1
      if (at >= line.length) this.#fail(`the label ${name} does not end`)
      const value = this.#unescape(line.slice(start, at), true)
      labels[name] = name === 'le' || name === 'quantile' ? this.#bound(value) : value
      at++
      if (line[at] === '}') return at + 1
      if (line[at] !== ',') this.#fail(`something stands behind the label ${name}`)
      at++
    }
  }

  /** A bound or quantile as the text format writes it. OpenMetrics writes whole numbers with their fraction. */
  #bound(written: string): string {
    if (!number.test(written)) this.#fail(`"${written}" is no bound`)
    if (written === '+Inf') return written
    if (this.#format === 'openmetrics' && !/[.e]/.test(written)) this.#fail(`"${written}" is not canonical`)
    return String(Number(written))
  }

  #unescape(text: string, quotes: boolean): string {
    return text.replace(/\\(.?)|"/g, (found, escaped: string | undefined) => {
      if (found === '"') return quotes ? this.#fail('a quote that is not escaped') : found
      if (escaped === 'n') return '\n'
      if (escaped === '\\' || (quotes && escaped === '"')) return escaped
      return this.#fail(`${found} is no escape`)
    })
  }

  #checkSample(family: Draft, name: string, labels: Labels, value: number): void {
    const type = family.type!
    const suffix = name.slice(family.name.length)
    const openCounter = type === 'counter' && this.#format === 'openmetrics'
    const allowed = suffixes[type] ?? [openCounter ? '_total' : '']
    if (!name.startsWith(family.name) || !allowed.includes(suffix))
      this.#fail(`${name} is no sample of the ${type} ${family.name}`)
    if (type === 'counter' && this.#format === 'text' && !name.endsWith('_total'))
      this.#fail(`the counter ${name} does not end in _total`)
    if ('le' in labels !== (suffix === '_bucket' && type === 'histogram')) this.#fail(`le at ${name}`)
    if ('quantile' in labels !== (suffix === '' && type === 'summary')) this.#fail(`quantile at ${name}`)
    const whole = type in suffixes && (suffix === '_bucket' || suffix === '_count')
    if ((whole || type === 'counter') && !(value >= 0 && value < Number.POSITIVE_INFINITY))
      this.#fail(`${name} is ${value}`)
    if (whole && !Number.isInteger(value)) this.#fail(`${name} is ${value}`)
  }

  /** For each set of labels: buckets that rise to +Inf, which is the count, and a sum. */
  #checkHistogram(family: Draft): void {
    for (const [key, { bounds, values, sum, count }] of this.#distributions(family, 'le')) {
      if (!rises(values, 0)) this.#fail(`${key}: the buckets fall`)
      if (bounds.at(-1) !== Number.POSITIVE_INFINITY) this.#fail(`${key}: no bucket for the rest`)
      if (count !== values.at(-1)) this.#fail(`${key}: the count is not that of the last bucket`)
      if (sum === undefined) this.#fail(`${key}: no sum`)
    }
  }

  /** For each set of labels: quantiles from 0 to 1 that rise, a sum and a count. */
  #checkSummary(family: Draft): void {
    for (const [key, { bounds, sum, count }] of this.#distributions(family, 'quantile')) {
      if (bounds.some(bound => !(bound >= 0 && bound <= 1))) this.#fail(`${key}: a quantile that is none`)
      if (sum === undefined || count === undefined) this.#fail(`${key}: no sum or no count`)
    }
  }

  /** The series of a histogram or summary by their labels without `bound`, in the order of the page. */
  #distributions({ name, samples }: Draft, bound: 'le' | 'quantile'): Map<string, DistributionDraft> {
    const series = new Map<string, DistributionDraft>()
    for (const { name: of, labels, value } of samples) {
      const { [bound]: at, ...rest } = labels
      const key = `${name}${JSON.stringify(Object.entries(rest).sort())}`
      let one = series.get(key)
      if (one === undefined) {
        one = { bounds: [], values: [], sum: undefined, count: undefined }
        series.set(key, one)
      }
      if (at !== undefined) {
        one.bounds.push(Number(at.replace('Inf', 'Infinity')))
        one.values.push(value)
      } else if (of.endsWith('_sum')) one.sum = value
      else one.count = value
    }
    for (const [key, { bounds }] of series)
      if (!rises(bounds, Number.MIN_VALUE)) this.#fail(`${key}: the ${bound}s do not rise`)
    return series
  }

  #fail(what: string): never {
    throw new Error(`line ${this.#line} of the ${this.#format} page: ${what}`)
  }
}

interface DistributionDraft {
  readonly bounds: number[]
  readonly values: number[]
  sum: number | undefined
  count: number | undefined
}

function rises(values: readonly number[], least: number): boolean {
  return values.every((value, i) => i === 0 || value - values[i - 1]! >= least)
}
