// What a host collector and those who show its readings agree on. A reading is a number of a series at a scrape.

/** `untyped`: the kernel does not say what it is; it is neither added up nor expected to fall. */
export type ReadingType = 'counter' | 'gauge' | 'untyped' | 'histogram' | 'summary'

/** The metric of the OpenTelemetry semantic conventions (version 1.44) that a family is. */
export interface OtelName {
  readonly name: string
  /** UCUM. */
  readonly unit: string
  readonly kind: 'gauge' | 'counter' | 'updowncounter'
  /** Label → attribute. Labels that are not here keep their name. */
  readonly attributes?: Readonly<Record<string, string>>
  /** Value of such a label → value that the convention has for it. Values that are not here stay. */
  readonly values?: Readonly<Record<string, string>>
  /** Labels that together tell the component: joined by `/` they are the attribute `hw.id`. */
  readonly id?: readonly string[]
  /** Attributes that the family's name implies. */
  readonly constant?: Readonly<Record<string, string>>
  /** A value of the convention is the family's value times this. */
  readonly scale?: number
  /** A lower value of the family says that there is none, and is no point of the convention's metric. */
  readonly least?: number
}

/** A metric family of a collector. Families of one name may differ in their labels, in nothing else. */
export interface Family {
  /** Without the namespace: `load1`. */
  readonly name: string
  readonly type: ReadingType
  /** One sentence: what it is, and its unit where the name does not say. */
  readonly help: string
  /** In rising order. */
  readonly labels: readonly string[]
  /** UCUM; '' where it is a number of things, or nobody knows. */
  readonly unit: string
  readonly otel?: OtelName
  /** `name` is the whole name: the family is not the host's, or came with its name. */
  readonly absolute?: boolean
}

/** Of one series: cumulative counts by upper bound, or values by quantile, in rising order and without +Inf. */
export interface Distribution {
  readonly parts: readonly (readonly [bound: number, value: number])[]
  readonly sum: number
  readonly count: number
}

/** Where a collector puts its readings. A series that is there already keeps its first reading and is counted. */
export interface Readings {
  /** Label values in the order of `family.labels`. No call keeps anything alive but new series. */
  set(family: Family, value: number, a?: string, b?: string, c?: string): void
  /** The same for families of any number of labels. */
  setAll(family: Family, value: number, labels: readonly string[]): void
  /** For types `histogram` and `summary`. */
  setDistribution(family: Family, distribution: Distribution, labels: readonly string[]): void
}

/** A collector at work. After the start `wait` and `collect` are called, never two waits at once. */
export interface Reader {
  /**
   * Waits for what cannot be read at once (a daemon, another process), and keeps what it found for `collect`, which it
   * replaces in one go. After the signal nobody waits for it any more, and it should end.
   */
  wait?(signal: AbortSignal): Promise<void>
  /** Why it never has readings, where it was to have some and the start found that out; `hint` may be ''. */
  readonly failure?: { readonly reason: string; readonly hint: string }
  /** Reads and hands over. Throws `NoData` where there is nothing of its kind, any other error where it failed. */
  collect(readings: Readings): void
  close?(): void
}

/**
 * What a collector reads is not on this host, or not for this process: not a failure. The message says what. It has no
 * stack, which would be most of the cost of the collectors that have nothing to read.
 */
export class NoData extends Error {
  override readonly name = 'NoData'

  constructor(message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
  }
}

export interface FamilyOptions {
  readonly labels?: readonly string[]
  readonly unit?: string
  readonly otel?: OtelName
  readonly absolute?: boolean
}

/** Declares a family. Throws where a name cannot be one, or the labels are not in order: mistakes in code. */
export function family(
  type: ReadingType,
  name: string,
  help: string,
  { labels = [], unit = unitOf(name), ...others }: FamilyOptions = {},
): Family {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`cannot declare ${name}: not a metric name`)
  const wrong = labels.find((label, i) => !labelName.test(label) || (i > 0 && labels[i - 1]! >= label))
  if (wrong !== undefined) throw new Error(`cannot declare ${name}: label ${wrong} is out of order, or none`)
  return { name, type, help, labels, unit, ...others }
}

const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/

export function counter(name: string, help: string, options?: FamilyOptions): Family {
  return family('counter', name, help, options)
}

export function gauge(name: string, help: string, options?: FamilyOptions): Family {
  return family('gauge', name, help, options)
}

export function untyped(name: string, help: string, options?: FamilyOptions): Family {
  return family('untyped', name, help, options)
}

const units: Readonly<Record<string, string>> = {
  seconds: 's',
  milliseconds: 'ms',
  microseconds: 'us',
  bytes: 'By',
  celsius: 'Cel',
  hertz: 'Hz',
  volts: 'V',
  amps: 'A',
  watt: 'W',
  joules: 'J',
  ratio: '1',
  percent: '%',
}

/** The unit that a metric's name ends in (Prometheus naming: `_seconds`, `_bytes_total`). */
function unitOf(name: string): string {
  const last = name
    .replace(/_total$/, '')
    .split('_')
    .at(-1)!
  return units[last] ?? ''
}
