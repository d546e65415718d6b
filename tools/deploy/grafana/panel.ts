// Panels of dashboards, in the form of Grafana 10 and 11.

/** Legend → expression of PromQL. A legend may name labels: `{{device}}`. */
export type Queries = Readonly<Record<string, string>>

export interface Panel {
  readonly title: string
  /** Of 24 columns. */
  readonly width: number
  /** In rows of 30 pixels. */
  readonly height: number
  /** All but its number and its place. */
  readonly json: object
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly min?: number
  readonly max?: number
  readonly decimals?: number
  /** Areas on top of one another. */
  readonly stack?: boolean
  /** Legends that match are drawn below zero. */
  readonly below?: string
  /** From where on it is yellow, and red. */
  readonly warn?: number
  readonly bad?: number
  /** Units of single columns or legends. */
  readonly units?: Readonly<Record<string, string>>
  /** What labels are called as columns. */
  readonly names?: Readonly<Record<string, string>>
}

/** The data source that a variable of every dashboard names. */
export const prometheus = { type: 'prometheus', uid: `\${datasource}` }

/** Words of expressions, and what they stand for: the series of what is chosen, and time enough for two scrapes. */
const words: Readonly<Record<string, string>> = {
  HOST: 'instance="$node",job="$job"',
  AGENT: 'instance=~"$instance",job=~"$job"',
  RATE: '$__rate_interval',
}

function spelledOut(expr: string): string {
  return expr.replaceAll(/\b[A-Z]{4,}\b/g, word => words[word] ?? word)
}

/** A panel of any type. `rest` comes behind what all have, and over it. */
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

/** The last value alone, as rows. */
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

/** How values look, and which of them are bad. */
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
