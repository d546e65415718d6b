// In-memory metrics, written in the Prometheus text format 0.0.4 or as OpenMetrics 1.0.

import { escapedHelp, labelText } from './label-text.ts'

export type MetricType = 'counter' | 'gauge' | 'histogram'

/** Adds one series of a family that is computed on read; label values in the order of their names. */
export type EmitSeries = (value: number, ...labelValues: string[]) => void

/** Maximum series of a family; further ones are combined in one series whose labels are `other`. */
const maxSeries = 1000

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/

/** A number that only increases. `inc` allocates nothing. */
export class Counter {
  value = 0

  inc(by = 1): void {
    this.value += by
  }
}

/** A number that increases and decreases. */
export class Gauge {
  value = 0

  set(value: number): void {
    this.value = value
  }

  add(by: number): void {
    this.value += by
  }
}

/** Observations counted by upper bound. `observe` allocates nothing. */
export class Histogram {
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last counts values above all of them. Not cumulative. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > this.bounds[bucket]!) bucket++
    this.counts[bucket]!++
    this.sum += value
  }

  /** Number of observations. */
  get count(): number {
    let count = 0
    for (const part of this.counts) count += part
    return count
  }
}

/** A metric with its series, one for each combination of label values. */
export class Family<Child extends Counter | Gauge | Histogram> {
  readonly desc: Description
  readonly #make: () => Child
  readonly #children = new Map<
    string,
    { child: Child; values: readonly string[]; lines: readonly string[] }
  >()

  constructor(desc: Description, make: () => Child) {
    check(desc)
    this.desc = desc
    this.#make = make
    if (desc.labelNames.length === 0) this.labels()
  }

  /** The series with these label values, created on first use. Keep a reference if it is updated often. */
  labels(...values: string[]): Child {
    const key = values.length === 1 ? values[0]! : values.join('\xff')
    const known = this.#children.get(key)
    if (known) return known.child
    if (values.length !== this.desc.labelNames.length)
      throw new Error(
        `cannot make a series of ${this.desc.name}: ${values.length} label values for ${this.desc.labelNames.length} names`,
      )
    if (this.#children.size >= maxSeries && !values.every(value => value === 'other'))
      return this.labels(...values.map(() => 'other'))
    const child = this.#make()
    this.#children.set(key, { child, values, lines: linePrefixes(this.desc, child, values) })
    return child
  }

  write(openMetrics: boolean): string {
    let text = header(this.desc, openMetrics)
    for (const { child, lines } of this.#children.values()) {
      if (child instanceof Histogram) text += histogramText(child, lines, openMetrics)
      else text += `${lines[0]}${number(child.value)}\n`
    }
    return text
  }

  read(emit: EmitSeries): void {
    for (const { child, values } of this.#children.values())
      emit(child instanceof Histogram ? child.count : child.value, ...values)
  }
}

/** Describes a family. */
export interface Description {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  readonly labelNames: readonly string[]
}

interface Declared {
  readonly desc: Description
  write(openMetrics: boolean): string
  /** Every series with its current value; for a histogram, its count. */
  read(emit: EmitSeries): void
}

/** A set of metrics. Declaring one twice, or with an invalid name, throws: both are mistakes in code. */
export class Registry {
  readonly #families = new Map<string, Declared>()

  counter(name: string, help: string, labelNames: readonly string[] = []): Family<Counter> {
    return this.#add(new Family({ name, help, type: 'counter', labelNames }, () => new Counter()), name)
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Family<Gauge> {
    return this.#add(new Family({ name, help, type: 'gauge', labelNames }, () => new Gauge()), name)
  }

  /** `bounds` are upper bounds in ascending order, without +Inf. */
  histogram(
    name: string,
    help: string,
    bounds: readonly number[],
    labelNames: readonly string[] = [],
  ): Family<Histogram> {
    const family = new Family({ name, help, type: 'histogram', labelNames }, () => new Histogram(bounds))
    return this.#add(family, name)
  }

  /** A family whose series are computed whenever the page is written. */
  collector(
    name: string,
    help: string,
    type: 'counter' | 'gauge',
    labelNames: readonly string[],
    collect: (emit: EmitSeries) => void,
  ): void {
    const desc = { name, help, type, labelNames }
    check(desc)
    const prefixes = new Map<string, string>()
    const write = (openMetrics: boolean) => {
      let text = header(desc, openMetrics)
      collect((value, ...labelValues) => {
        const key = labelValues.join('\xff')
        let prefix = prefixes.get(key)
        if (prefix === undefined) {
          if (prefixes.size >= maxSeries) prefixes.clear()
          prefix = `${name}${labelText(labelNames, labelValues)} `
          prefixes.set(key, prefix)
        }
        text += `${prefix}${number(value)}\n`
      })
      return text
    }
    this.#add({ desc, write, read: collect }, name)
  }

  /** A histogram without labels that is kept elsewhere. */
  observed(name: string, help: string, observed: () => Histogram): void {
    const desc = { name, help, type: 'histogram', labelNames: [] } as const
    check(desc)
    const write = (openMetrics: boolean) => {
      const histogram = observed()
      return (
        header(desc, openMetrics) + histogramText(histogram, linePrefixes(desc, histogram, []), openMetrics)
      )
    }
    this.#add({ desc, write, read: emit => emit(observed().count) }, name)
  }

  /** The declared families, in order. */
  get declared(): readonly Pick<Declared, 'desc' | 'read'>[] {
    return [...this.#families.values()]
  }

  /** The whole page, in the order of declaration. */
  write(openMetrics = false): string {
    let text = ''
    for (const family of this.#families.values()) text += family.write(openMetrics)
    return openMetrics ? `${text}# EOF\n` : text
  }

  #add<F extends Declared>(family: F, name: string): F {
    if (this.#families.has(name)) throw new Error(`cannot declare metric ${name}: it is declared already`)
    this.#families.set(name, family)
    return family
  }
}

function check(desc: Description): void {
  const wrong = desc.labelNames.find(label => !labelName.test(label) || label === 'le')
  if (!metricName.test(desc.name)) throw new Error(`cannot declare metric ${desc.name}: not a metric name`)
  if (wrong !== undefined)
    throw new Error(`cannot declare metric ${desc.name}: ${wrong} cannot be a label name`)
  // OpenMetrics 1.0, "Counter": the sample's name is the family's with _total.
  if (desc.type === 'counter' && !desc.name.endsWith('_total'))
    throw new Error(`cannot declare counter ${desc.name}: its name must end in _total`)
}

function header(desc: Description, openMetrics: boolean): string {
  const name = openMetrics && desc.type === 'counter' ? desc.name.slice(0, -'_total'.length) : desc.name
  return `# HELP ${name} ${escapedHelp(desc.help, openMetrics)}\n# TYPE ${name} ${desc.type}\n`
}

/** The text before each number of a series, so that writing a page is only concatenation. */
function linePrefixes(desc: Description, child: Counter | Gauge | Histogram, values: string[]): string[] {
  const { name, labelNames } = desc
  const labels = labelText(labelNames, values)
  if (!(child instanceof Histogram)) return [`${name}${labels} `]
  const open = labels === '' ? '{' : `${labels.slice(0, -1)},`
  return [`${name}_bucket${open}le="`, `${name}_sum${labels} `, `${name}_count${labels} `]
}

function histogramText(child: Histogram, lines: readonly string[], openMetrics: boolean): string {
  let text = ''
  let count = 0
  for (let i = 0; i < child.bounds.length; i++) {
    count += child.counts[i]!
    const bound = child.bounds[i]!
    // OpenMetrics 1.0, "Canonical Numbers": a bound that is a whole number is written with its fraction.
    text += `${lines[0]}${bound}${openMetrics && Number.isInteger(bound) ? '.0' : ''}"} ${count}\n`
  }
  count += child.counts[child.bounds.length]!
  return `${text}${lines[0]}+Inf"} ${count}\n${lines[1]}${number(child.sum)}\n${lines[2]}${count}\n`
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value)
  if (Number.isNaN(value)) return 'NaN'
  return value > 0 ? '+Inf' : '-Inf'
}
