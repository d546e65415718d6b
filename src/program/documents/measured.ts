// The last reading of metrics: those of the host from the page, svc's own from its registry.

import { labelText } from '../../foundation/lib/label-text.ts'
import type { Registry } from '../../foundation/lib/registry.ts'
import { gauge } from '../../foundation/model/collector.ts'
import type { Series } from '../../signals/metrics/exposition/page.ts'
import type { HostReadings } from '../agent/host-metrics-push.ts'
import { isCounted, rawValue } from './metric-recorder.ts'

/** One series. */
export interface Measured {
  /** The part of its line before the number. */
  readonly prefix: string
  readonly labels: Readonly<Record<string, string>>
  /** For a histogram or summary, its count. */
  readonly value: number
  /** Undefined for svc's own. */
  readonly source: Series | undefined
}

export interface MeasuredFamily {
  readonly name: string
  readonly collector: string
  readonly otelName: string
  readonly help: string
  readonly type: string
  /** UCUM. */
  readonly unit: string
  /** The values only increase. */
  readonly isCounted: boolean
  readonly series: readonly Measured[]
}

/** The families of the host, or the one with this name, ordered by name. */
export function measuredOf({ page, runs }: HostReadings, only?: string): MeasuredFamily[] {
  const found: MeasuredFamily[] = []
  for (const [name, all] of page.read(new Set(runs))) {
    if (only !== undefined && name !== only) continue
    const { family, source } = all[0]!
    found.push({
      name,
      collector: source.name,
      otelName: family.otel?.name ?? '',
      help: family.help,
      type: family.type,
      unit: family.unit,
      isCounted: isCounted({ family }),
      series: all.map(series => measured(name, series)),
    })
  }
  return found
}

function measured(name: string, series: Series): Measured {
  const { prefix, distribution } = series
  return {
    prefix: distribution === undefined ? prefix : `${name}_count${prefix.slice(name.length)}`,
    get labels() {
      return labelsOf(series)
    },
    value: rawValue(series),
    source: series,
  }
}

/** Families on the page: some may be excluded from it. */
function labelsOf({ family, labels, prefix }: Series): Record<string, string> {
  const names =
    labels.length === family.labels.length
      ? family.labels
      : [...prefix.matchAll(/[{,](\w+)="(?:[^"\\]|\\.)*"/g)].map(([, name]) => name!)
  return Object.fromEntries(names.map((name, i) => [name, labels[i]!]))
}

/** The families of svc itself that have a series, or the one with this name, in the order of their declaration. */
export function ownFamilies(registry: Registry, only?: string): MeasuredFamily[] {
  const found: MeasuredFamily[] = []
  for (const family of registry.declared) {
    const { name, help, type, labelNames } = family.desc
    if (only !== undefined && name !== only) continue
    const shown = type === 'histogram' ? `${name}_count` : name
    const series: Measured[] = []
    family.read((value, ...all) => {
      const labels = labelNames.filter((_, i) => all[i])
      const values = all.filter(label => label !== '')
      series.push({
        prefix: `${shown}${labelText(labels, values)} `,
        labels: Object.fromEntries(labels.map((label, i) => [label, values[i]!])),
        value,
        source: undefined,
      })
    })
    if (series.length === 0) continue
    const { unit } = gauge(name, help)
    found.push({
      name,
      collector: 'svc',
      otelName: '',
      help,
      type,
      unit,
      isCounted: type !== 'gauge',
      series,
    })
  }
  return found
}
