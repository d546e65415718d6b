// The document that tells what the page's metrics are, and what the semantic conventions call them.

import type { Family, OtelName } from '../../../foundation/model/collector.ts'
import type { Bounds } from './bounds.ts'
import type { Page, Source } from './page.ts'

/** A metric of the page. */
export interface DescribedMetric {
  readonly name: string
  /** Of the semantic conventions; '' where they have none for it. */
  readonly otel_name: string
  readonly description: string
  /** UCUM; '' where it is a number of things. */
  readonly unit: string
  readonly type: string
  /** Label → attribute that it is over OTLP. */
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
    /** Of the semantic conventions. */
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
  /** Of these collectors: families that they made at work are described too, under the name of the source. */
  readonly sources: Iterable<Source>
  readonly bounds: Bounds
  /** Version of the semantic conventions. */
  readonly version: string
}

/** Describes what the page has, and what it would have were there something to read. */
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

/** Families of one name may differ in their labels: `before` has those that came first. */
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
