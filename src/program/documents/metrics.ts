// Metrics of this host and of svc: all of them, and one over time.

import { labelText } from '../../foundation/lib/label-text.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Family } from '../../signals/metrics/collectors/collector.ts'
import { collectors, extraCollectors } from '../../signals/metrics/collectors/index.ts'
import { numberText } from '../../signals/metrics/exposition/number-text.ts'
import type { MetricsDocument, SeriesLine } from '../../view/api/ui/documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import type { DocumentContext } from './document-context.ts'
import { type Measured, type MeasuredFamily, measuredOf, ownFamilies } from './measured.ts'

type Section = MetricsDocument['sections'][number]
export type FamilyDocument = Section['families'][number]

/** Lifetime of a reading, shared by viewers. */
const freshMs = 2000
const everyMs = 2000
/** Maximum number of series shown for a metric. */
const mostSeries = 50
const off =
  'Host metrics are off: set agent.nodeexporter.enabled: true. Only the metrics of svc itself are shown.'

interface Unit {
  readonly name: string
  readonly source?: string
  readonly metrics: readonly Family[]
}

const all: readonly Unit[] = [...collectors, ...extraCollectors]
const units = new Map(all.map(unit => [unit.name, unit]))

/** All current metrics, by collector. */
export async function metrics(parts: DocumentContext): Promise<MetricsDocument> {
  parts.recorder.want()
  const own = section('svc', '', '', ownFamilies(parts.registry))
  const hostMetrics = parts.hostMetrics()
  if (hostMetrics === undefined) return { at_ms: Date.now(), sections: [own], no_data_reason: off }
  try {
    const { source, atMs } = await hostMetrics.read(freshMs)
    const byCollector = new Map<string, MeasuredFamily[]>(source.runs.map(({ name }) => [name, []]))
    for (const family of measuredOf(source)) byCollector.get(family.collector)?.push(family)
    return {
      at_ms: epochMs(atMs),
      sections: [
        ...source.runs.map(({ name, outcome, reason }) =>
          section(
            name,
            units.get(name)?.source ?? '',
            outcome === 'success' ? '' : reason,
            byCollector.get(name)!,
          ),
        ),
        own,
      ],
      no_data_reason: '',
    }
  } catch (error) {
    return {
      at_ms: Date.now(),
      sections: [own],
      no_data_reason: `Cannot read host metrics: ${errorText(error)}; svc diagnostics has the log.`,
    }
  }
}

function section(name: string, source: string, fault: string, families: readonly MeasuredFamily[]): Section {
  return { name, source, fault, families: families.map(documentOf) }
}

function documentOf({ name, otelName, help, type, unit, series }: MeasuredFamily): FamilyDocument {
  const only = series.length === 1 ? series[0]!.value : Number.NaN
  return {
    name,
    otel_name: otelName,
    help,
    type,
    unit,
    series: series.length,
    value: Number.isFinite(only) ? only : null,
  }
}

/** One metric, current and recorded. Undefined: unknown name. */
export function series(parts: DocumentContext, name: string): Live<SeriesLine> | undefined {
  const isOwn = ownFamily(parts, name) !== undefined
  if (!isOwn && !isOfHost(parts, name)) return undefined
  const before = new Map<string, { readonly value: number; readonly atMs: number }>()
  let shown: readonly string[] | undefined
  let sentMs = Number.NEGATIVE_INFINITY

  /** Values of the shown series; counters as rates since the last reading. */
  function valuesOf(family: MeasuredFamily | undefined, atMs: number): (number | null)[] {
    const found = new Map(family?.series.map(each => [each.prefix, each]))
    return shown!.map(prefix => {
      const value = found.get(prefix)?.value ?? Number.NaN
      const last = before.get(prefix)
      before.set(prefix, { value, atMs })
      if (family === undefined || !family.isCounted) return numberOrNull(value)
      if (last === undefined || atMs <= last.atMs) return null
      const grown = value - last.value
      return grown >= 0 ? numberOrNull((1000 * grown) / (atMs - last.atMs)) : null
    })
  }

  return {
    everyMs,
    next: async () => {
      parts.recorder.want()
      const { family, atMs } = await reading(parts, name, isOwn)
      if (shown === undefined) {
        const most = largest(family?.series ?? [])
        shown = most.map(({ prefix }) => prefix)
        const first = startLine(parts, family ?? nothing(name), most)
        sentMs = atMs
        const values = valuesOf(family, atMs)
        // A counter has no rate before the second reading.
        return family?.isCounted ? [first] : [first, tickLine(atMs, values)]
      }
      if (atMs <= sentMs) return []
      sentMs = atMs
      return [tickLine(atMs, valuesOf(family, atMs))]
    },
  }
}

function startLine(parts: DocumentContext, family: MeasuredFamily, most: readonly Measured[]): SeriesLine {
  const known = most.flatMap(({ source }) => (source === undefined ? [] : [source]))
  const past = known.length === most.length ? parts.recorder.past(known) : undefined
  return {
    kind: 'start',
    family: documentOf(family),
    from_ms: past?.fromMs ?? Date.now(),
    step_ms: past?.stepMs ?? everyMs,
    rate: family.isCounted,
    series: most.map((each, i) => ({
      ...shownSeries(parts, each),
      values: (past?.values[i] ?? []).map(numberOrNull),
    })),
    omitted: family.series.length - most.length,
  }
}

function shownSeries(parts: DocumentContext, { prefix, labels, value }: Measured) {
  const names = Object.keys(labels)
  const values = names.map(label => parts.shown(labels[label]!, label))
  const name = /^[^{ ]*/.exec(prefix)![0]
  return {
    labels: Object.fromEntries(names.map((label, i) => [label, values[i]!])),
    line: `${name}${labelText(names, values)} ${numberText(value)}`,
  }
}

function tickLine(atMs: number, values: (number | null)[]): SeriesLine {
  return { kind: 'tick', at_ms: epochMs(atMs), values }
}

/** The largest values, in order. */
function largest(all: readonly Measured[]): readonly Measured[] {
  if (all.length <= mostSeries) return all
  const size = ({ value }: Measured) => (Number.isNaN(value) ? -1 : Math.abs(value))
  const kept = new Set([...all].sort((a, b) => size(b) - size(a)).slice(0, mostSeries))
  return all.filter(each => kept.has(each))
}

interface FamilyReading {
  readonly family: MeasuredFamily | undefined
  /** Of `performance.now()`. */
  readonly atMs: number
}

async function reading(parts: DocumentContext, name: string, isOwn: boolean): Promise<FamilyReading> {
  const hostMetrics = isOwn ? undefined : parts.hostMetrics()
  if (hostMetrics === undefined) return { family: ownFamily(parts, name), atMs: performance.now() }
  // A little less than the period of updates, which varies.
  const { source, atMs } = await hostMetrics.read(everyMs - 200)
  return { family: measuredOf(source, name)[0], atMs }
}

function ownFamily(parts: DocumentContext, name: string): MeasuredFamily | undefined {
  return ownFamilies(parts.registry, name)[0]
}

/** Whether the host has or had this metric, or an enabled collector may have it. */
function isOfHost(parts: DocumentContext, name: string): boolean {
  const readings = parts.hostMetrics()?.readings
  if (readings === undefined) return false
  const { namespace } = parts.loaded().config.agent.nodeexporter
  // Before the first reading, the names from files are unknown.
  if (readings.runs.every(({ round }) => round === 0)) return name.startsWith(`${namespace}_`)
  if (readings.page.families().some(([known]) => known === name)) return true
  return readings.runs.some(run =>
    units
      .get(run.name)
      ?.metrics.some(family => name === (family.absolute ? family.name : `${namespace}_${family.name}`)),
  )
}

/** A time of `performance.now()` as milliseconds since the Unix epoch. */
function epochMs(atMs: number): number {
  return Math.round(Date.now() - performance.now() + atMs)
}

function nothing(name: string): MeasuredFamily {
  return {
    name,
    collector: '',
    otelName: '',
    help: '',
    type: 'untyped',
    unit: '',
    isCounted: false,
    series: [],
  }
}

/** Fractions have nine digits: more than a chart shows, fewer than a double has. */
function numberOrNull(value: number): number | null {
  if (!Number.isFinite(value)) return null
  return Number.isInteger(value) ? value : Number(value.toPrecision(9))
}
