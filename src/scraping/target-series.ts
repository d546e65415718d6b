import type { PlacedMetric, PreparedMetric } from '../model/prepared-metric.ts'
import type { Resource } from '../model/resource.ts'
import type { Family, Page } from './exposition.ts'
import { formatOf } from './fetch/page-format.ts'
import { type MappedFamily, type MappedSeries, mapFamily, staleMetrics } from './mapping/map-family.ts'
import type { DerivedNumber, Identity, TargetInfo } from './mapping/mapped-family.ts'
import { writeStarts } from './mapping/start-time.ts'
import { PageError } from './page-error.ts'
import { PageLayout } from './page-layout.ts'
import { isSamePiece, piecesOf } from './page-pieces.ts'
import { PageReader } from './page-reader.ts'
import { ResourceTable } from './resource-table.ts'
import { sampleKey } from './sample-key.ts'
import { seriesLabels } from './series-labels.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Target } from './target.ts'
import { Turn } from './turn.ts'

/** A page as it was fetched. */
export interface FetchedPage {
  readonly body: Buffer
  readonly contentType: string
}

/** What a scrape came to. */
export interface Taken {
  readonly samples: number
  /** Of them after relabelling. */
  readonly kept: number
  /** Series that were not there before. */
  readonly added: number
  readonly warning: string
}

/** Every so many pages is read as a whole as well, and both readings are compared. */
const guardEvery = 64
const maxLineBytes = 2 ** 20

/** By sample. */
type Exemplars = Page['exemplars']
const noExemplars: Exemplars = new Map()

/** Between two looks at the clock. */
const samplesAtOnce = 5000
const bytesAtOnce = 128 * 1024
/** Series between two looks at the clock. */
const lookEvery = 64

/** One metric of a piece: ready but for its numbers. */
interface Ready {
  readonly identity: Identity
  readonly prepared: PreparedMetric
}

/** Series that are made, judged and encoded together: a family, or a part of one. */
interface Piece {
  readonly family: Family
  /** The family's name and the number of the part. */
  readonly key: string
  from: number
  to: number
  /** Samples after relabelling. */
  readonly kept: number
  /** Some of its samples have times of their own. */
  readonly timed: boolean
  /** Some of its samples have exemplars, which have no place in what is ready. */
  readonly hasExemplars: boolean
  /** Undefined: its metrics come whole each time. */
  ready: Ready[] | undefined
  /** Its series where they come whole. */
  whole: readonly MappedSeries[] | undefined
  /** Points that the mapping has no form for, counted each time. */
  readonly dropped: ReadonlyMap<string, number>
  readonly starts: readonly DerivedNumber[]
  /** Places that it needs; as many as samples where nothing but values is told. */
  readonly places: number
  /** What the places point into: a view of all values, or numbers of its own. */
  numbers: Float64Array
}

/** The series of one target: what they were made into, for as long as its page says the same but for numbers. */
export class TargetSeries {
  /** Pages that were read as a whole because something but numbers differed. */
  wholeReads = 0
  readonly #sink: SeriesSink
  #target: Target
  #resources: ResourceTable
  #layout: PageLayout | undefined
  #values = new Float64Array(0)
  #timesUs = new Float64Array(0)
  #exemplars: Exemplars = noExemplars
  #pieces: readonly Piece[] = []
  #kept = 0
  #contentType = ''
  #untilGuard = guardEvery
  /** The fast read was wrong once: it is not trusted again. */
  #distrusted = false
  /** All series were told to have ended. */
  #ended = true

  constructor(sink: SeriesSink, target: Target) {
    this.#sink = sink
    this.#target = target
    this.#resources = new ResourceTable(target)
  }

  /** That of the target itself. */
  get resource(): Resource {
    return this.#resources.own
  }

  /** From now on these settings hold; series are made anew by them. */
  change(target: Target): void {
    this.#target = target
    this.#resources = new ResourceTable(target)
    this.#layout = undefined
    this.#pieces = []
  }

  /** Takes a page and hands on its metrics. Rejects with the reason why the scrape failed; then nothing was handed on. */
  async take(page: FetchedPage, timeUs: number): Promise<Taken> {
    const made = (await this.#readFast(page)) ? undefined : await this.#readWhole(page, timeUs)
    this.#ended = false
    await this.#send(timeUs)
    const { added, warning } = made ?? { added: 0, warning: '' }
    return { samples: this.#values.length, kept: this.#kept, added, warning }
  }

  /** Tells that all series ended, if they have not. */
  async end(timeUs: number): Promise<void> {
    const layout = this.#layout
    if (layout === undefined || this.#ended) return
    this.#ended = true
    const turn = new Turn()
    for (const piece of this.#pieces) {
      if (this.#hasNoEnd(piece)) continue
      this.#sendEnded(piece, this.#seriesOf(layout, piece.from, piece.to), timeUs)
      if (turn.isOver) await turn.next()
    }
  }

  async #readFast({ body, contentType }: FetchedPage): Promise<boolean> {
    const layout = this.#layout
    if (layout === undefined || this.#distrusted || contentType !== this.#contentType) return false
    const turn = new Turn()
    layout.begin(body)
    let isSameText = layout.go(this.#values, this.#timesUs, samplesAtOnce)
    while (isSameText === undefined) {
      if (turn.isOver) await turn.next()
      isSameText = layout.go(this.#values, this.#timesUs, samplesAtOnce)
    }
    if (!isSameText) return false
    this.#exemplars = layout.exemplars
    this.#untilGuard--
    if (this.#untilGuard > 0) return true
    this.#untilGuard = guardEvery
    const page = await this.#parse(body, contentType)
    if (isSame(page.values, this.#values) && isSame(page.timesUs, this.#timesUs)) return true
    this.#distrusted = true
    this.#sink.contradicts(this.#target)
    return false
  }

  async #parse(body: Buffer, contentType: string): Promise<Page> {
    const { lenient } = this.#target.job
    const verdict = formatOf(contentType, 'text')
    if ('fault' in verdict) throw new PageError(verdict.fault)
    const reader = new PageReader(body, verdict.format, { lenient, maxSamples: 0, maxLineBytes })
    const turn = new Turn()
    let page = reader.read(bytesAtOnce)
    while (page === undefined) {
      if (turn.isOver) await turn.next()
      page = reader.read(bytesAtOnce)
    }
    if (!('reason' in page)) return page
    throw new PageError(`line ${page.line}: ${page.reason}: ${page.excerpt}`)
  }

  async #readWhole(
    { body, contentType }: FetchedPage,
    timeUs: number,
  ): Promise<{ added: number; warning: string }> {
    const page = await this.#parse(body, contentType)
    this.wholeReads++
    // What the reader uses again is copied before anybody else gets a turn.
    const layout = new PageLayout(page)
    const values = page.values.slice()
    const timesUs = page.timesUs.slice()
    const { exemplars } = page
    const turn = new Turn()
    const resources = await this.#resourcesOf(layout, page.families, turn)
    const old = this.#layout
    const known = new Map<string, Piece>()
    if (old !== undefined && resources === this.#resources)
      for (const piece of this.#pieces) known.set(piece.key, piece)
    const pieces: Piece[] = []
    const fresh: Piece[] = []
    const reused = new Set<Piece>()
    const counts = new Map<string, number>()
    let kept = 0
    for (const family of page.families)
      for (const [from, to] of piecesOf(layout, family)) {
        const nth = (counts.get(family.name) ?? 0) + 1
        counts.set(family.name, nth)
        const key = `${family.name} ${nth}`
        const before = known.get(key)
        let piece: Piece
        if (
          before !== undefined &&
          before.to - before.from === to - from &&
          isSameFamily(before.family, family) &&
          isSamePiece(layout, from, to, old!, before.from)
        ) {
          reused.add(before)
          piece = { ...before, from, to }
        } else {
          piece = await this.#make({ layout, family, key, from, to, timesUs, exemplars, resources }, turn)
          fresh.push(piece)
        }
        pieces.push(piece)
        kept += piece.kept
        this.#checkSamples(kept)
        if (turn.isOver) await turn.next()
      }
    const gone = old === undefined ? [] : this.#pieces.filter(piece => !reused.has(piece))
    const added = await this.#compare(old, gone, layout, fresh, timeUs, turn)
    for (const piece of pieces) piece.numbers = numbersOf(piece, values)
    this.#layout = layout
    this.#values = values
    this.#timesUs = timesUs
    this.#exemplars = exemplars
    this.#pieces = pieces
    this.#kept = kept
    this.#resources = resources
    this.#contentType = contentType
    this.#untilGuard = guardEvery
    return { added, warning: warningOf(page) }
  }

  #checkSamples(kept: number): void {
    const { samples } = this.#target.job.limits
    if (samples > 0 && kept > samples)
      throw new PageError(`more than ${samples} samples, which is the limit of the job (sample_limit)`)
  }

  /** The resources of a page: those of the page before, where `target_info` says the same. */
  async #resourcesOf(layout: PageLayout, families: readonly Family[], turn: Turn): Promise<ResourceTable> {
    const infos: TargetInfo[] = []
    for (const family of families) {
      if (family.name !== 'target_info' && !(family.name === 'target' && family.type === 'info')) continue
      const series = this.#seriesOf(layout, family.from, family.to)
      infos.push(...mapFamily({ family, series, numbers: 'places' }).targetInfo)
      if (turn.isOver) await turn.next()
    }
    return this.#resources.isFor(infos) ? this.#resources : new ResourceTable(this.#target, infos)
  }

  async #make(
    about: {
      readonly layout: PageLayout
      readonly family: Family
      readonly key: string
      readonly from: number
      readonly to: number
      readonly timesUs: Float64Array
      readonly exemplars: Exemplars
      readonly resources: ResourceTable
    },
    turn: Turn,
  ): Promise<Piece> {
    const { layout, family, key, from, to, timesUs, exemplars, resources } = about
    const size = to - from
    const { honorTimestamps } = this.#target.job
    let timed = false
    let hasExemplars = false
    for (let i = 0; i < size; i++) {
      timed ||= honorTimestamps && !Number.isNaN(timesUs[from + i])
      hasExemplars ||= exemplars.size > 0 && exemplars.has(from + i)
    }
    const series: MappedSeries[] = []
    for (let i = from; i < to; i++) {
      this.#addSeries(layout, i, from, timed ? timesUs : undefined, size, series)
      if (i % lookEvery === 0 && turn.isOver) await turn.next()
    }
    const startsAt = timed ? 2 * size : size
    const mapped = mapFamily({ family, series, numbers: 'places', startsAt })
    const ready = !hasExemplars ? await this.#prepare(mapped, resources, turn) : undefined
    return {
      family,
      key,
      from,
      to,
      kept: series.length,
      timed,
      hasExemplars,
      ready,
      whole: ready === undefined ? series : undefined,
      dropped: mapped.dropped,
      starts: mapped.starts,
      places: startsAt + mapped.starts.length,
      numbers: this.#values,
    }
  }

  async #prepare(
    { metrics }: MappedFamily,
    resources: ResourceTable,
    turn: Turn,
  ): Promise<Ready[] | undefined> {
    const ready: Ready[] = []
    for (const { identity, scope, metric } of metrics) {
      const resource = resources.of(identity)
      const prepared = this.#sink.prepared.prepare(resource, scope, metric as PlacedMetric)
      if (prepared === undefined) return undefined
      ready.push({ identity, prepared })
      if (turn.isOver) await turn.next()
    }
    return ready
  }

  /** The series of some samples; `value` is the number of the sample among them. */
  #seriesOf(layout: PageLayout, from: number, to: number): MappedSeries[] {
    const series: MappedSeries[] = []
    for (let i = from; i < to; i++) this.#addSeries(layout, i, from, undefined, 0, series)
    return series
  }

  #addSeries(
    layout: PageLayout,
    sample: number,
    from: number,
    timesUs: Float64Array | undefined,
    size: number,
    series: MappedSeries[],
  ): void {
    const bytes = layout.keyBytes(sample)
    const key = sampleKey(bytes, 0, bytes.length)
    if (key === undefined) return
    const found = seriesLabels(this.#target.job, this.#target, key)
    if (found === undefined) return
    if ('reason' in found) throw new PageError(found.reason)
    const isTimed = timesUs !== undefined && !Number.isNaN(timesUs[sample])
    const value = sample - from
    series.push({ ...found, value, timeUs: isTimed ? 1 + size + value : 0 })
  }

  /** Tells the end of series that are no more. Returns how many are new. */
  async #compare(
    old: PageLayout | undefined,
    gone: readonly Piece[],
    layout: PageLayout,
    fresh: readonly Piece[],
    timeUs: number,
    turn: Turn,
  ): Promise<number> {
    const now = new Set<string>()
    for (const { from, to } of fresh) {
      for (let i = from; i < to; i++) now.add(layout.keyBytes(i).toString('latin1'))
      if (turn.isOver) await turn.next()
    }
    let common = 0
    if (old !== undefined && !this.#ended)
      for (const piece of gone) {
        const vanished: MappedSeries[] = []
        const isTold = !this.#hasNoEnd(piece)
        for (let i = piece.from; i < piece.to; i++)
          if (now.has(old.keyBytes(i).toString('latin1'))) common++
          else if (isTold) this.#addSeries(old, i, piece.from, undefined, 0, vanished)
        this.#sendEnded(piece, vanished, timeUs)
        if (turn.isOver) await turn.next()
      }
    return Math.max(0, now.size - common)
  }

  /** Series with times of their own end when their source stops telling them: that is what such a time is for. */
  #hasNoEnd({ timed }: Piece): boolean {
    return timed && !this.#target.job.trackTimestampsStaleness
  }

  #sendEnded({ family }: Piece, series: readonly MappedSeries[], timeUs: number): void {
    if (series.length === 0) return
    for (const { identity, scope, metric } of staleMetrics({ family, series }, timeUs))
      this.#sink.add(this.#resources.of(identity), scope, metric)
  }

  async #send(timeUs: number): Promise<void> {
    const { prepared } = this.#sink
    const turn = new Turn()
    for (const piece of this.#pieces) {
      this.#fill(piece, timeUs)
      for (const [reason, points] of piece.dropped) this.#sink.lose(reason, points)
      if (piece.ready === undefined) this.#sendWhole(piece, timeUs)
      for (let i = 0; i < (piece.ready?.length ?? 0); i++) {
        const sent = prepared.send(piece.ready![i]!.prepared, piece.numbers, timeUs)
        if (sent === 'old') await this.#renew(piece, i, timeUs, turn)
        else if (sent === 'unfit') this.#sendWhole(piece, timeUs, i, i + 1)
      }
      if (turn.isOver) await turn.next()
    }
  }

  #fill({ numbers, from, to, timed, starts }: Piece, timeUs: number): void {
    if (!timed && starts.length === 0 && numbers.buffer === this.#values.buffer) return
    const size = to - from
    for (let i = 0; i < size; i++) numbers[i] = this.#values[from + i]!
    if (timed) for (let i = 0; i < size; i++) numbers[size + i] = tellable(this.#timesUs[from + i]!)
    writeStarts(starts, numbers, timed ? 2 * size : size, timeUs)
  }

  /** What is done to metrics has changed, or was long ago: all of the piece are made anew, and number `at` is sent. */
  async #renew(piece: Piece, at: number, timeUs: number, turn: Turn): Promise<void> {
    const { family, key, from, to } = piece
    const anew = await this.#make(
      {
        layout: this.#layout!,
        family,
        key,
        from,
        to,
        timesUs: this.#timesUs,
        exemplars: noExemplars,
        resources: this.#resources,
      },
      turn,
    )
    const before = piece.ready!.length
    piece.ready = anew.ready
    piece.whole = anew.whole
    if (anew.ready === undefined) this.#sendWhole(piece, timeUs, at, before)
    else if (this.#sink.prepared.send(anew.ready[at]!.prepared, piece.numbers, timeUs) !== 'sent')
      this.#sendWhole(piece, timeUs, at, at + 1)
  }

  /** Sends metrics `first` to `end` of a piece by their values. */
  #sendWhole(piece: Piece, timeUs: number, first = 0, end = Number.POSITIVE_INFINITY): void {
    const { family, from, to, timed } = piece
    const places = piece.whole ?? this.#seriesOf(this.#layout!, from, to)
    const series = places.map(({ name, labels, value: at }) => {
      const ownUs = timed ? this.#timesUs[from + at]! : Number.NaN
      return {
        name,
        labels,
        value: this.#values[from + at]!,
        timeUs: Number.isNaN(ownUs) ? timeUs : tellable(ownUs),
        exemplar: this.#exemplars.get(from + at),
      }
    })
    const { metrics, dropped } = mapFamily({ family, series, numbers: 'values' })
    for (const [i, { identity, scope, metric }] of metrics.entries())
      if (i >= first && i < end) this.#sink.add(this.#resources.of(identity), scope, metric)
    // What is dropped for its names was counted; what is dropped for its values only this knows.
    for (const [reason, points] of dropped) {
      const counted = piece.dropped.get(reason) ?? 0
      if (points > counted) this.#sink.lose(reason, points - counted)
    }
  }
}

/** Where the values of a piece stand as they were read, or numbers of its own where there are others among them. */
function numbersOf({ from, to, places }: Piece, values: Float64Array): Float64Array {
  return places === to - from ? values.subarray(from, to) : new Float64Array(places)
}

function warningOf({ badLines, faults: [first] }: Page): string {
  if (badLines === 0 || first === undefined) return ''
  const lines = badLines === 1 ? 'a line was' : `${badLines} lines were`
  return `${lines} left out, the first of them line ${first.line}: ${first.reason}: ${first.excerpt}`
}

function isSameFamily(one: Family, other: Family): boolean {
  return one.type === other.type && one.help === other.help && one.unit === other.unit
}

/** A time of a page as OTLP can have it, in 64 bits of nanoseconds; 0 is not known. */
function tellable(timeUs: number): number {
  return timeUs > 0 && timeUs < 2 ** 63 / 1000 ? timeUs : 0
}

function isSame(a: Float64Array, b: Float64Array): boolean {
  for (let i = 0; i < b.length; i++) if (!Object.is(a[i], b[i])) return false
  return true
}
