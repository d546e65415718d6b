// Overview of the host: one stream for all pages and the frame of the page.

import { computed, signal } from '@preact/signals'
import type { OverviewLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from './api.ts'
import { useLive } from './live.ts'
import { parameter } from './route.ts'

type Start = Extract<OverviewLine, { kind: 'start' }>
type Tick = Extract<OverviewLine, { kind: 'tick' }>

export interface Overview {
  readonly start: Start
  /** Undefined during the first second. */
  readonly tick: Tick | undefined
  /** Times of the values, in seconds since the Unix epoch, as charts need them. */
  readonly times: readonly number[]
  /** Values by series, as long as `times`. */
  readonly values: readonly (readonly (number | null)[])[]
}

/** Default time window, in seconds. */
export const defaultSeconds = 300
/** Limits of the API. */
const leastSeconds = 10
const mostSeconds = 86_400
/** The overview has a line each second. */
const quietMs = 10_000

export const overview = signal<Overview | undefined>(undefined)
/** Why there is no overview; '' if there is one, or one is loading. */
export const overviewError = signal('')

/** Time window of pages in seconds: `w` of the URL. */
export const windowSeconds = computed(() => {
  const asked = Math.round(Number(parameter('w')))
  return asked > 0 ? Math.max(leastSeconds, Math.min(mostSeconds, asked)) : defaultSeconds
})

/** Why this host is not observed, if because of the agent's mode; otherwise ''. */
export const unobserving = computed(() =>
  overview.value?.start.host.mode === 'collector'
    ? 'In mode collector, svc observes nothing on its host: set mode: agent, and restart svc.'
    : '',
)

/** Follows it; only for the frame of the page. */
export function useOverview(): void {
  const { value, error } = useLive<OverviewLine, Overview | undefined>(
    apiUrl('overview', { seconds: windowSeconds.value }),
    (before, line) => {
      if (line.kind === 'start') {
        const { from_ms, step_ms, series } = line
        const count = series[0]?.values.length ?? 0
        return {
          start: line,
          tick: undefined,
          times: Array.from({ length: count }, (_, i) => (from_ms + i * step_ms) / 1000),
          values: series.map(each => each.values),
        }
      }
      if (before === undefined) return undefined
      const drop = Math.max(0, before.times.length + 1 - windowSeconds.value)
      return {
        start: before.start,
        tick: line,
        times: [...before.times.slice(drop), line.at_ms / 1000],
        values: before.values.map((values, i) => [...values.slice(drop), line.values[i] ?? null]),
      }
    },
    quietMs,
  )
  overview.value = value ?? overview.peek()
  overviewError.value = error
}
