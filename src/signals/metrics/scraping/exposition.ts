// Contents of a page of metrics, as the reader returns them.

/** `text`: Prometheus text format 0.0.4 and 1.0.0; `openmetrics`: OpenMetrics 1.0 and 0.0.1. */
export type PageFormat = 'text' | 'openmetrics'

export type FamilyType =
  | 'unknown'
  | 'counter'
  | 'gauge'
  | 'histogram'
  | 'gaugehistogram'
  | 'summary'
  | 'info'
  | 'stateset'

/** A metric family as declared by its metadata lines, or implied by its samples (`unknown`). */
export interface Family {
  /** As in the metadata: without `_total` for an OpenMetrics counter. */
  readonly name: string
  readonly type: FamilyType
  readonly help: string
  readonly unit: string
  /**
   * Its samples are `from` to `to` (exclusive) of the page. A family in several places of the page occurs several
   * times.
   */
  readonly from: number
  readonly to: number
}

/** An exemplar of a sample line (OpenMetrics). */
export interface LineExemplar {
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
  /** Microseconds since the Unix epoch; 0 for none. */
  readonly timeUs: number
}

/** A parsed page. Element i of each array belongs to sample i. */
export interface Page {
  /** The page's buffer, which the next page overwrites: copy what is kept. */
  readonly body: Buffer
  readonly format: PageFormat
  readonly families: readonly Family[]
  readonly samples: number
  /** Range of each sample's name and labels in the body. */
  readonly keyFrom: Uint32Array
  readonly keyTo: Uint32Array
  readonly values: Float64Array
  /** Microseconds since the Unix epoch; NaN if the line has no timestamp. */
  readonly timesUs: Float64Array
  /** By sample index. */
  readonly exemplars: ReadonlyMap<number, LineExemplar>
  /** Unreadable lines that were skipped (`lenient`), and details of the first few. */
  readonly badLines: number
  readonly faults: readonly LineFault[]
}

export interface LineFault {
  /** Line number, from 1. */
  readonly line: number
  /** Description of the fault. */
  readonly reason: string
  /** Start of the line in printable form, at most 120 characters. */
  readonly excerpt: string
}

/** Name and labels of a sample, unescaped. Labels are in the order of the page. */
export interface SampleKey {
  readonly name: string
  readonly labels: Map<string, string>
}
