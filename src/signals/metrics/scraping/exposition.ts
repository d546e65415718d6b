// What a page of metrics says, in the form in which the reader hands it on.

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

/** A metric family as its metadata lines declare it, or as its samples imply it (`unknown`). */
export interface Family {
  /** As in the metadata: of an OpenMetrics counter without `_total`. */
  readonly name: string
  readonly type: FamilyType
  readonly help: string
  readonly unit: string
  /** Samples `from` to `to` (exclusive) of the page are its own. One that is told in several places is several. */
  readonly from: number
  readonly to: number
}

/** An exemplar of a line (OpenMetrics). */
export interface LineExemplar {
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
  /** Microseconds since the Unix epoch, 0: none. */
  readonly timeUs: number
}

/** A page that was read as a whole. Sample i is told by the i-th element of each array. */
export interface Page {
  /** The page's own bytes: not to be kept beyond the next page without a copy. */
  readonly body: Buffer
  readonly format: PageFormat
  readonly families: readonly Family[]
  readonly samples: number
  /** Where name and labels of each sample stand in the body. */
  readonly keyFrom: Uint32Array
  readonly keyTo: Uint32Array
  readonly values: Float64Array
  /** Microseconds since the Unix epoch; NaN: the line has none. */
  readonly timesUs: Float64Array
  /** By sample. */
  readonly exemplars: ReadonlyMap<number, LineExemplar>
  /** Lines that were left out because they could not be read (`lenient`), of which the first few are told. */
  readonly badLines: number
  readonly faults: readonly LineFault[]
}

export interface LineFault {
  /** From 1. */
  readonly line: number
  /** What is wrong, in words. */
  readonly reason: string
  /** The line's beginning, made printable, 120 characters at most. */
  readonly excerpt: string
}

/** Name and labels of a sample, unescaped. The labels stand in the order of the page. */
export interface SampleKey {
  readonly name: string
  readonly labels: Map<string, string>
}
