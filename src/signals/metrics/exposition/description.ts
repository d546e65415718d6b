// Document that describes the page's metrics, with their names in the semantic conventions.

import type { Family, OtelName } from '../../../foundation/model/collector.ts'
import type { Bounds } from './bounds.ts'
import type { Page, Source } from './page.ts'

/** A metric of the page. */
export interface DescribedMetric {
  readonly name: string
  /** Name in the semantic conventions; '' if they have none. */
  readonly otel_name: string
  readonly description: string
  /** UCUM unit; '' for a count. */
  readonly unit: string
  readonly type: string
  /** Label → attribute in OTLP. */
  readonly labels: Readonly<Record<string, string>>
  readonly has_otel_mapping: boolean
}

/** The metrics of one collector. */
export interface DescribedCategory {
  readonly category: string
  readonly count: number
  readonly metrics: readonly DescribedMetric[]
}

/** The metric description document. */
export interface Description {
  readonly categories: readonly DescribedCategory[]
  readonly total: number
  readonly otel_info: {
    /** Version of the semantic conventions. */
    readonly version: string
    readonly mapped_count: number
    readonly total_metrics: number
    readonly coverage: string
  }
}

export interface DescriptionOptions {
  readonly namespace: string
  /** Collectors with the families that they declare, in the order of the document. */
  readonly collectors: readonly { readonly name: string; readonly metrics: readonly Family[] }[]
  readonly page: Page
  /** Sources of these collectors: families created at run time are also described, under the name of the source. */
  readonly sources: Iterable<Source>
  readonly bounds: Bounds
  /** Version of the semantic conventions. */
  readonly version: string
}

/** Describes the metrics on the page, and those that would be on it if there were data. */
export function describe(options: DescriptionOptions): Description {
  const { namespace, collectors, page, sources, bounds, version } = options
  const byCategory = new Map<string, Map<string, DescribedMetric>>()
  const add = (category: string, name: string, family: Family) => {
    if (!bounds.shows(name)) return
    const metrics = byCategory.get(category) ?? new Map<string, DescribedMetric>()
    byCategory.set(category, metrics)
    metrics.set(name, described(name, family, bounds, metrics.get(name)))
  }
  for (const { name: category, metrics } of collectors)
    for (const family of metrics)
      add(category, family.absolute ? family.name : `${namespace}_${family.name}`, family)
  for (const [name, all] of page.read(new Set(sources))) {
    let last: Family | undefined
    for (const { family, source } of all) {
      if (family !== last) add(source.name, name, family)
      last = family
    }
  }
  const categories = [...byCategory]
    .filter(([, metrics]) => metrics.size > 0)
    .map(([category, metrics]) => ({ category, count: metrics.size, metrics: [...metrics.values()] }))
  const all = categories.flatMap(({ metrics }) => metrics)
  const mapped = all.filter(({ has_otel_mapping }) => has_otel_mapping).length
  return {
    categories,
    total: all.length,
    otel_info: {
      version,
      mapped_count: mapped,
      total_metrics: all.length,
      coverage: `${((100 * mapped) / Math.max(1, all.length)).toFixed(1)}%`,
    },
  }
}

/** Families with the same name may have different labels: `before` has those of earlier ones. */
function described(
  name: string,
  { help, unit, type, labels, otel }: Family,
  bounds: Bounds,
  before: DescribedMetric | undefined,
): DescribedMetric {
  const attributes = labels
    .filter(label => !bounds.drops(label))
    .map(label => [label, attribute(otel, label)])
  return {
    name,
    otel_name: otel?.name ?? before?.otel_name ?? '',
    description: help,
    unit,
    type,
    labels: { ...before?.labels, ...Object.fromEntries(attributes) },
    has_otel_mapping: otel !== undefined || (before?.has_otel_mapping ?? false),
  }
}

function attribute(otel: OtelName | undefined, label: string): string {
  return otel?.attributes?.[label] ?? label
}
