// Panels of dashboards, in the form of Grafana 10 and 11.

/** Legend → PromQL expression. A legend may contain labels: `{{device}}`. */
export type Queries = Readonly<Record<string, string>>

export interface Panel {
  readonly title: string
  /** Of 24 columns. */
  readonly width: number
  /** In rows of 30 pixels. */
  readonly height: number
  /** Without its number and its position. */
  readonly json: object
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly min?: number
  readonly max?: number
  readonly decimals?: number
  /** Stacked areas. */
  readonly stack?: boolean
  /** Matching legends are drawn below zero. */
  readonly below?: string
  /** Thresholds of yellow and red. */
  readonly warn?: number
  readonly bad?: number
  /** Units of single columns or legends. */
  readonly units?: Readonly<Record<string, string>>
  /** Column names of labels. */
  readonly names?: Readonly<Record<string, string>>
}

/** The data source chosen by a variable of every dashboard. */
export const prometheus = { type: 'prometheus', uid: `\${datasource}` }

/** Placeholders in expressions: the selected series, and a range that includes two scrapes. */
const words: Readonly<Record<string, string>> = {
  HOST: 'instance="$node",job="$job"',
  AGENT: 'instance=~"$instance",job=~"$job"',
  RATE: '$__rate_interval',
}

function spelledOut(expr: string): string {
  return expr.replaceAll(/\b[A-Z]{4,}\b/g, word => words[word] ?? word)
}

/** A panel of any type. `rest` is appended to the common part, and overrides it. */
export function panel(
  type: string,
  title: string,
  description: string,
  { width, height }: { readonly width: number; readonly height: number },
  queries: Queries,
  rest: object,
): Panel {
  const targets = Object.entries(queries).map(([legend, expr], i) => target(refId(i), legend, expr))
  return {
    title,
    width,
    height,
    json: { type, title, description, datasource: prometheus, targets, ...rest },
  }
}

/** `A`, `B` and so on. */
export function refId(at: number): string {
  return String.fromCharCode(65 + at)
}

export function target(ref: string, legend: string, expr: string): object {
  const legendFormat = legend === '' ? '__auto' : legend
  return {
    refId: ref,
    datasource: prometheus,
    editorMode: 'code',
    expr: spelledOut(expr),
    legendFormat,
    range: true,
  }
}

/** Only the last value, as rows. */
export function instant(ref: string, expr: string): object {
  return {
    refId: ref,
    datasource: prometheus,
    editorMode: 'code',
    expr: spelledOut(expr),
    format: 'table',
    instant: true,
  }
}

/** Format of values, and thresholds. */
export function fieldConfig(
  unit: string,
  { min, max, decimals, warn, bad, units = {} }: Look,
  custom: object = {},
  overrides: readonly object[] = [],
): object {
  const steps: { color: string; value: number | null }[] = [{ color: 'green', value: null }]
  if (warn !== undefined) steps.push({ color: 'orange', value: warn })
  if (bad !== undefined) steps.push({ color: 'red', value: bad })
  const others = Object.entries(units).map(([name, own]) => ({
    matcher: { id: 'byName', options: name },
    properties: [{ id: 'unit', value: own }],
  }))
  return {
    defaults: {
      unit,
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
      ...(decimals === undefined ? {} : { decimals }),
      custom,
      mappings: [],
      thresholds: { mode: 'absolute', steps },
    },
    overrides: [...overrides, ...others],
  }
}
