// Keeps all series of the host metrics at a coarse step, so that a metric has a past when it is opened.

import type { Page, Series } from '../../exposition/page.ts'
import { SampleHistory } from '../../window/sample-history.ts'
import type { Reading } from '../host-metrics.ts'
import type { HostReadings } from '../host-metrics-push.ts'

export interface MetricRecorderOptions {
  /** Reads all collectors, unless they were read within so many milliseconds; undefined while they are off. */
  readonly read: (maxAgeMs: number) => Promise<Reading | undefined>
  readonly windowMs: number
  readonly maxBytes: number
  readonly stepMs?: number
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/** What is known of a series. */
interface Track {
  readonly column: number
  /** Of the last reading: the number as the page has it. */
  value: number
  round: number
}

/** The past of some series. */
export interface RecordedPast {
  /** Milliseconds since the Unix epoch. */
  readonly fromMs: number
  readonly stepMs: number
  /** Series by series, as many values of each; `NaN` where nothing is known. */
  readonly values: number[][]
}

const leastStepMs = 10_000
/** Of a longer window the steps are longer, so that its memory lasts for all series and not for the first few. */
const mostRows = 360
/** While nobody looks there is so much more time between two readings than one takes. */
const restFactor = 500
/** A series takes this beside its values. */
const trackBytes = 256
/** However much memory there is. */
const mostTracks = 100_000

/**
 * Values of counters are kept as rates a second. Series for which there is no room are left out, and counted. Where a
 * reading takes long, as the first one does, it records more rarely unless somebody looked of late.
 */
export class MetricRecorder {
  /** Series for which there was no room at the last reading. */
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
    // A block of columns has some bytes of its own, which 32 for each column cover.
    const seriesBytes = rows * 8 + 32 + trackBytes
    this.#mostTracks = Math.min(mostTracks, Math.floor(maxBytes / seriesBytes))
    this.#history = new SampleHistory({
      rows,
      stepMs,
      maxBytes: this.#mostTracks * (seriesBytes - trackBytes),
      wide: true,
    })
  }

  /** Memory that it takes now. */
  get bytes(): number {
    return this.#history.bytes + this.#tracks.size * trackBytes
  }

  /** Records from now on, in whole steps. The process does not live on for it. */
  start(): void {
    this.stop()
    this.#isOn = true
    this.#schedule()
  }

  stop(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
  }

  /** Somebody looks at metrics: for the window's time they are recorded whatever it costs. */
  want(): void {
    this.#wantedUntilMs = this.#now() + this.#windowMs
  }

  /** Records once, where that is due or wanted. Never rejects. */
  async look(): Promise<void> {
    const nowMs = this.#now()
    // Half a step: timers are not as regular as steps.
    const isDue = nowMs - this.#readMs + this.#stepMs / 2 >= this.#costMs * restFactor
    if (!isDue && nowMs > this.#wantedUntilMs) return
    try {
      const reading = await this.#read(this.#stepMs / 4)
      if (reading !== undefined) this.record(reading)
    } catch {
      // Who asks for the page is told why they cannot be read.
    }
  }

  /** Takes a reading into the books; one that is there already changes nothing. */
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
      // As long as there is a value of it, it is not let go of.
      if (this.#round - track.round < this.#history.rows) continue
      this.#tracks.delete(series)
      this.#history.release(track.column)
    }
  }

  /** The past of these series. */
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

/** What a reading took of the thread; of collectors that wait it is not known, and they do little else. */
function costMs({ runs }: HostReadings): number {
  let seconds = 0
  for (const run of runs) if (run.reader.wait === undefined) seconds += run.seconds
  return seconds * 1000
}

/** The number of a series; of a histogram or summary how much it counted. */
export function rawValue({ value, distribution }: Series): number {
  return distribution === undefined ? value : distribution.count
}

/** Whether the number only grows, so that what it grows by is what one wants to see. */
export function isCounted({ family: { type } }: Pick<Series, 'family'>): boolean {
  return type === 'counter' || type === 'histogram' || type === 'summary'
}
