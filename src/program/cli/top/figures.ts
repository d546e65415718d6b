import type { OverviewStart, OverviewTick } from './view.ts'

/** Summary of the host; undefined where unknown. */
export interface HostFigures {
  /** Busy time of all CPUs together. */
  readonly cpuPercent: number | undefined
  readonly usedBytes: number | undefined
  readonly memoryBytes: number | undefined
  readonly receivedPerS: number | undefined
  readonly sentPerS: number | undefined
}

/** Waiting is not busy, and stolen time is another guest's. */
const notBusy = /idle|wait|steal|guest/i

/** From the newest values of the charts. */
export function hostFigures(start: OverviewStart | undefined, tick: OverviewTick | undefined): HostFigures {
  const valuesOf = (chart: string, matches: (label: string) => boolean) => {
    const found: number[] = []
    start?.series.forEach((series, i) => {
      const value = tick?.values[i]
      if (series.chart === chart && matches(series.label) && typeof value === 'number') found.push(value)
    })
    return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0)
  }
  const isOutside = (label: string) => !/loopback|\blo\b/i.test(label)
  const network = (direction: RegExp) =>
    valuesOf('network', label => direction.test(label) && isOutside(label))
  return {
    cpuPercent: valuesOf('cpu', label => !notBusy.test(label)),
    usedBytes: valuesOf('memory', label => /^used/i.test(label)),
    memoryBytes: valuesOf('memory', label => !/swap/i.test(label)),
    receivedPerS: network(/receive|\brx\b|\bin\b/i),
    sentPerS: network(/sent|transmit|\btx\b|\bout\b/i),
  }
}
