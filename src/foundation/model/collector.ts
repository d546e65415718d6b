// The contract between host collectors and the code that exports their readings. A reading is one number of one series
// at one scrape.

/** `untyped`: the kernel does not document the type; it is neither summed nor expected to decrease. */
export type ReadingType = 'counter' | 'gauge' | 'untyped' | 'histogram' | 'summary'

/** The metric of the OpenTelemetry semantic conventions (version 1.44) that corresponds to a family. */
export interface OtelName {
  readonly name: string
  /** UCUM. */
  readonly unit: string
  readonly kind: 'gauge' | 'counter' | 'updowncounter'
  /** Label → attribute. Labels that are missing here keep their name. */
  readonly attributes?: Readonly<Record<string, string>>
  /** Label value → value in the convention. Values that are missing here stay unchanged. */
  readonly values?: Readonly<Record<string, string>>
  /** Labels that identify the component: joined by `/` they become the attribute `hw.id`. */
  readonly id?: readonly string[]
  /** Attributes that the family's name implies. */
  readonly constant?: Readonly<Record<string, string>>
  /** The convention's value is the family's value times this factor. */
  readonly scale?: number
  /** Values of the family below this mean "none" and yield no point of the convention's metric. */
  readonly least?: number
}

/** A metric family of a collector. Families of the same name may differ only in their labels. */
export interface Family {
  /** Without the namespace: `load1`. */
  readonly name: string
  readonly type: ReadingType
  /** One sentence: the meaning, and the unit unless the name includes it. */
  readonly help: string
  /** In ascending order. */
  readonly labels: readonly string[]
  /** UCUM; '' if it is a plain count, or unknown. */
  readonly unit: string
  readonly otel?: OtelName
  /** `name` is already complete: the family is not about the host, or was read with its full name. */
  readonly absolute?: boolean
}

/** One series: cumulative counts by upper bound, or values by quantile, in ascending order and without +Inf. */
export interface Distribution {
  readonly parts: readonly (readonly [bound: number, value: number])[]
  readonly sum: number
  readonly count: number
}

/** Receives a collector's readings. A duplicate series keeps its first reading and is counted. */
export interface Readings {
  /** Label values in the order of `family.labels`. Only new series retain references to the arguments. */
  set(family: Family, value: number, a?: string, b?: string, c?: string): void
  /** The same for any number of labels. */
  setAll(family: Family, value: number, labels: readonly string[]): void
  /** For types `histogram` and `summary`. */
  setDistribution(family: Family, distribution: Distribution, labels: readonly string[]): void
}

/** A running collector. After the start `wait` and `collect` are called; waits never overlap. */
export interface Reader {
  /**
   * Waits for data that is not available synchronously (a daemon, another process), and stores it for `collect`,
   * replacing the previous data at once. After the signal its result is ignored, and it should end.
   */
  wait?(signal: AbortSignal): Promise<void>
  /** Why it will never have readings although it should, as found at the start; `hint` may be ''. */
  readonly failure?: { readonly reason: string; readonly hint: string }
  /**
   * Reads the data and sets the readings. Throws `NoData` if there is nothing to read, any other error if it failed.
   */
  collect(readings: Readings): void
  close?(): void
}

/**
 * The host or this process has no such data: not a failure. The message names the missing part. It has no stack, which
 * would be most of the cost of collectors with nothing to read.
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

/** Declares a family. Throws on an invalid name or unsorted labels, which are mistakes in code. */
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

/** The unit in a metric name's suffix (Prometheus naming: `_seconds`, `_bytes_total`). */
function unitOf(name: string): string {
  const last = name
    .replace(/_total$/, '')
    .split('_')
    .at(-1)!
  return units[last] ?? ''
}
