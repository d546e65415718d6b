import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type GpuMetric, type GpuMetricName, gpuMetrics } from './gpu-metrics.ts'
import type { Extra, GpuPlace } from './gpu-place.ts'

/** Percent as a fraction; undefined if unknown or invalid, as from some drivers for sleeping GPUs. */
export function fraction(percent: number | undefined): number | undefined {
  return percent !== undefined && percent >= 0 && percent <= 100 ? percent / 100 : undefined
}

function described(name: GpuMetricName, points: readonly NumberPoint[]): Metric {
  const { kind, unit, description }: GpuMetric = gpuMetrics[name]
  if (kind === 'gauge') return { kind, name, unit, description, points }
  return {
    kind: 'sum',
    monotonic: kind === 'counter',
    integer: unit !== 'J',
    name,
    unit,
    description,
    points,
  }
}

/** Points of one time, by metric. */
export class GpuPoints {
  readonly #points = new Map<GpuMetricName, NumberPoint[]>()
  readonly #bootUs: number
  readonly #timeUs: number

  /** Microseconds since the Unix epoch; `bootUs` is the default start of sums. */
  constructor(bootUs: number, timeUs: number) {
    this.#bootUs = bootUs
    this.#timeUs = timeUs
  }

  /** Unknown values are omitted. */
  add(
    name: GpuMetricName,
    place: GpuPlace,
    value: number | undefined,
    extra?: Extra,
    startUs = gpuMetrics[name].kind === 'gauge' ? 0 : this.#bootUs,
  ): void {
    if (value === undefined) return
    const point = { attributes: place.with(extra), startUs, timeUs: this.#timeUs, value }
    const points = this.#points.get(name)
    if (points === undefined) this.#points.set(name, [point])
    else points.push(point)
  }

  metrics(): Metric[] {
    return [...this.#points].map(([name, points]) => described(name, points))
  }
}
