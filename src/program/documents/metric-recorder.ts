// Records all host metrics at a coarse step, so that a metric has a history when it is opened.

import type { Page, Series } from '../../signals/metrics/exposition/page.ts'
import { SampleHistory } from '../../view/window/sample-history.ts'
import type { Reading } from '../agent/host-metrics.ts'
import type { HostReadings } from '../agent/host-metrics-push.ts'

export interface MetricRecorderOptions {
  /** Reads all collectors, unless they were read within that many milliseconds; undefined while they are off. */
  readonly read: (maxAgeMs: number) => Promise<Reading | undefined>
  readonly windowMs: number
  readonly maxBytes: number
  readonly stepMs?: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** A recorded series. */
interface Track {
  readonly column: number
  /** Number of the last reading, as on the page. */
  value: number
  round: number
}

/** The history of some series. */
export interface RecordedPast {
  /** Milliseconds since the Unix epoch. */
  readonly fromMs: number
  readonly stepMs: number
  /** The values of each series, all of one length; `NaN` if unknown. */
  readonly values: number[][]
}

const leastStepMs = 10_000
/** Longer windows have longer steps, so that the memory suffices for all series. */
const mostRows = 360
/** Without viewers, the time between two readings is this many times the duration of one. */
const restFactor = 500
/** Overhead of a series beyond its values. */
const trackBytes = 256
/** Upper limit, regardless of memory. */
const mostTracks = 100_000

/**
 * Counters are recorded as rates per second. Series that do not fit are omitted and counted. If a reading takes long,
 * as the first one does, recording is less frequent unless there was a recent viewer.
 */
export class MetricRecorder {
  /** Series that did not fit at the last reading. */
  leftOut = 0
  readonly #read: MetricRecorderOptions['read']
  readonly #stepMs: number
  readonly #windowMs: number
  readonly #now: () => number
  readonly #history: SampleHistory
  readonly #mostTracks: number
  readonly #tracks = new Map<Series, Track>()
  #page: Page | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #round = 0
  #costMs = 0
  #wantedUntilMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isOn = false

  constructor({
    read,
    windowMs,
    maxBytes,
    stepMs = leastStepMs * Math.max(1, Math.ceil(windowMs / leastStepMs / mostRows)),
    now = () => performance.now(),
  }: MetricRecorderOptions) {
    this.#read = read
    this.#stepMs = stepMs
    this.#windowMs = windowMs
    this.#now = now
    const rows = Math.max(1, Math.ceil(windowMs / stepMs))
    // A block of columns has some overhead, covered by 32 bytes per column.
    const seriesBytes = rows * 8 + 32 + trackBytes
    this.#mostTracks = Math.min(mostTracks, Math.floor(maxBytes / seriesBytes))
    this.#history = new SampleHistory({
      rows,
      stepMs,
      maxBytes: this.#mostTracks * (seriesBytes - trackBytes),
      wide: true,
    })
  }

  /** Current memory. */
  get bytes(): number {
    return this.#history.bytes + this.#tracks.size * trackBytes
  }

  /** Starts recording, at whole steps. Does not keep the process alive. */
  start(): void {
    this.stop()
    this.#isOn = true
    this.#schedule()
  }

  stop(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
  }

  /** Notes a viewer: metrics are recorded at full rate for the duration of the window. */
  want(): void {
    this.#wantedUntilMs = this.#now() + this.#windowMs
  }

  /** Records once, if due or requested. Never rejects. */
  async look(): Promise<void> {
    const nowMs = this.#now()
    // Half a step: timers are not as regular as steps.
    const isDue = nowMs - this.#readMs + this.#stepMs / 2 >= this.#costMs * restFactor
    if (!isDue && nowMs > this.#wantedUntilMs) return
    try {
      const reading = await this.#read(this.#stepMs / 4)
      if (reading !== undefined) this.record(reading)
    } catch {
      // The request for metrics reports why they cannot be read.
    }
  }

  /** Records a reading; a known one changes nothing. */
  record({ source, atMs }: Reading): void {
    if (atMs <= this.#readMs) return
    if (source.page !== this.#page) this.#forget(source.page)
    const passedS = (atMs - this.#readMs) / 1000
    this.#readMs = atMs
    this.#round++
    this.leftOut = 0
    this.#costMs = costMs(source)
    this.#history.begin(atMs)
    for (const [, all] of source.page.read(new Set(source.runs)))
      for (const series of all) this.#take(series, passedS)
    for (const [series, track] of this.#tracks) {
      // A series is kept while any of its values is.
      if (this.#round - track.round < this.#history.rows) continue
      this.#tracks.delete(series)
      this.#history.release(track.column)
    }
  }

  /** The history of these series. */
  past(all: readonly Series[]): RecordedPast {
    const history = this.#history
    const { length } = history
    const first = history.newest - length + 1
    const columns = all.map(series => this.#tracks.get(series)?.column)
    return {
      fromMs: length === 0 ? Date.now() : Math.round(Date.now() - this.#now() + history.timeOf(first)),
      stepMs: this.#stepMs,
      values: columns.map(column => {
        const values = new Array<number>(length)
        for (let i = 0; i < length; i++)
          values[i] = column === undefined ? Number.NaN : history.at(column, first + i)
        return values
      }),
    }
  }

  #take(series: Series, passedS: number): void {
    const value = rawValue(series)
    let track = this.#tracks.get(series)
    if (track === undefined) {
      const column = this.#tracks.size < this.#mostTracks ? this.#history.take() : undefined
      if (column === undefined) {
        this.leftOut++
        return
      }
      track = { column, value: Number.NaN, round: this.#round }
      this.#tracks.set(series, track)
    }
    const isNext = track.round === this.#round - 1
    const grown = value - track.value
    const rate = isNext && grown >= 0 ? grown / passedS : Number.NaN
    this.#history.set(track.column, isCounted(series) ? rate : value)
    track.value = value
    track.round = this.#round
  }

  /** Other collectors have other series. */
  #forget(page: HostReadings['page']): void {
    for (const { column } of this.#tracks.values()) this.#history.release(column)
    this.#tracks.clear()
    this.#page = page
  }

  #schedule(): void {
    const nowMs = this.#now()
    const nextMs = (Math.round(nowMs / this.#stepMs) + 1) * this.#stepMs
    this.#timer = setTimeout(async () => {
      await this.look()
      if (this.#isOn) this.#schedule()
    }, nextMs - nowMs)
    this.#timer.unref()
  }
}

/** Duration of a reading on this thread; unknown for collectors that wait, which do little else. */
function costMs({ runs }: HostReadings): number {
  let seconds = 0
  for (const run of runs) if (run.reader.wait === undefined) seconds += run.seconds
  return seconds * 1000
}

/** The number of a series; for a histogram or summary, its count. */
export function rawValue({ value, distribution }: Series): number {
  return distribution === undefined ? value : distribution.count
}

/** Whether the number only increases, so that its rate is of interest. */
export function isCounted({ family: { type } }: Pick<Series, 'family'>): boolean {
  return type === 'counter' || type === 'histogram' || type === 'summary'
}
