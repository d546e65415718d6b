import { Turn } from '../../../foundation/lib/turn.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import type { Family, Page } from './exposition.ts'
import { formatOf } from './fetch/page-format.ts'
import { exemplarBytes } from './line-exemplar.ts'
import { type MappedSeries, mapFamily } from './mapping/map-family.ts'
import type { TargetInfo } from './mapping/mapped-family.ts'
import { PageError } from './page-error.ts'
import { PageLayout } from './page-layout.ts'
import { isSamePart, type PagePart, partsOf } from './page-pieces.ts'
import { PageReader } from './page-reader.ts'
import { type PageHolder, PageRoom } from './page-room.ts'
import { ResourceTable } from './resource-table.ts'
import {
  fillPiece,
  hasSomeExemplar,
  makePiece,
  type Piece,
  pieceBytes,
  type Reading,
  reportEnds,
  reusedPiece,
  sendWhole,
  seriesAt,
} from './series-piece.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Target } from './target.ts'

/** A fetched page. */
export interface FetchedPage {
  readonly body: Buffer
  readonly contentType: string
}

/** Result of a scrape. */
export interface Taken {
  readonly samples: number
  /** Samples left after relabelling. */
  readonly kept: number
  /** New series. */
  readonly added: number
  readonly warning: string
}

/** A parsed page, with data that is valid for pages with the same text. */
interface Known extends Reading {
  readonly contentType: string
  readonly pieces: readonly Piece[]
  /** Memory of all this, without the exemplars of its last page. */
  bytes: number
  exemplarBytes: number
  readonly kept: number
  readonly warning: string
}

/** Interval, in pages, at which a page is also parsed in full to compare the results. */
const guardEvery = 64
const maxLineBytes = 2 ** 20
/** Format of a page without a Content-Type. */
const usualFormat = 'text'
/** Maximum `target_info` series of a page. */
const mostInfos = 10_000

/** Work between two checks of the clock. */
const samplesAtOnce = 5000
const bytesAtOnce = 128 * 1024
/** Series between two checks of the clock. */
const lookEvery = 64

/**
 * Series of one target, with their prepared form as long as only the numbers of its page change. One call at a time,
 * except `change`.
 */
export class TargetSeries implements PageHolder {
  /** Pages that were parsed in full because more than numbers changed. */
  wholeReads = 0
  readonly #sink: SeriesSink
  readonly #room: PageRoom
  #target: Target
  #resources: ResourceTable
  #known: Known | undefined
  #untilGuard = guardEvery
  /** Whether metrics that are sent whole should be prepared again. */
  #isRetry = false
  /** The fast reading was wrong once, and is no longer used. */
  #distrusted = false
  /** Whether all series were marked as ended. */
  #ended = true
  /** Whether nothing may be kept any more. */
  #closed = false

  constructor(sink: SeriesSink, target: Target, room = new PageRoom()) {
    this.#sink = sink
    this.#room = room
    this.#target = target
    this.#resources = new ResourceTable(target)
  }

  /** Resource of the target itself. */
  get resource(): Resource {
    return this.#resources.own
  }

  /** Sets the settings for the next page. The target has the same ID. */
  change(target: Target): void {
    this.#target = target
  }

  /**
   * Processes a page and sends its metrics. Rejects with the reason of a failed scrape (`PageError`), before anything
   * was sent. Also rejects if `stop` is raised, at any point.
   */
  async take(page: FetchedPage, timeUs: number, stop?: AbortSignal): Promise<Taken> {
    let added = 0
    let known: Known | undefined
    try {
      known = await this.#readFast(page, stop)
      if (known === undefined) ({ known, added } = await this.#readWhole(page, timeUs, stop))
      this.#ended = false
      await this.#send(known, timeUs, stop)
    } finally {
      this.#settle()
    }
    return { samples: known.values.length, kept: known.kept, added, warning: known.warning }
  }

  /** Marks all series as ended, unless they are. */
  async end(timeUs: number): Promise<void> {
    const known = this.#known
    if (known === undefined || this.#ended) return
    this.#ended = true
    const turn = new Turn()
    for (const piece of known.pieces) {
      await reportEnds(this.#sink, piece, known, timeUs, turn)
      if (turn.isOver) await turn.next()
    }
  }

  /** Releases all memory. A running call may still finish. */
  close(): void {
    this.#closed = true
    this.#room.leave(this)
  }

  /**
   * Releases prepared metrics: they are made from their text at each scrape, until the next attempt to prepare them.
   */
  shed(): void {
    const known = this.#known
    if (known === undefined) return
    for (const piece of known.pieces) {
      known.bytes -= pieceBytes(piece)
      piece.ready = undefined
      piece.whole = undefined
      known.bytes += pieceBytes(piece)
    }
    this.#untilGuard = guardEvery
    this.#settle()
  }

  /** Reports the memory that is kept from now on. */
  #settle(): void {
    const { bytes = 0, exemplarBytes = 0 } = this.#known ?? {}
    if (!this.#closed) this.#room.hold(this, bytes + exemplarBytes)
  }

  /** As `#hold`, for data in the making: most of it replaces what is kept, so the larger of both counts. */
  #holdAlso(bytes: number): void {
    this.#hold(Math.max(this.#known?.bytes ?? 0, bytes))
  }

  /** Throws if there is no room for it. */
  #hold(bytes: number): void {
    if (this.#closed || this.#room.hold(this, bytes)) return
    throw new PageError(
      `no memory left for its series: the limit is ${this.#room.limitBytes} bytes for all targets and half of that for one; raise limits.memory, or reduce the series of the target`,
    )
  }

  async #readFast(page: FetchedPage, stop: AbortSignal | undefined): Promise<Known | undefined> {
    const known = this.#known
    if (known === undefined || this.#distrusted) return undefined
    if (page.contentType !== known.contentType || this.#target !== known.target) return undefined
    const { layout, values, timesUs } = known
    const turn = new Turn(undefined, stop)
    layout.begin(page.body)
    let isSameText = layout.go(values, timesUs, samplesAtOnce)
    while (isSameText === undefined) {
      if (turn.isOver) await turn.next()
      isSameText = layout.go(values, timesUs, samplesAtOnce)
    }
    if (!isSameText) return undefined
    known.exemplarBytes = exemplarsOf(layout, page.body.length)
    this.#hold(known.bytes + known.exemplarBytes)
    this.#untilGuard--
    if (this.#untilGuard > 0) return known
    this.#untilGuard = guardEvery
    this.#isRetry = true
    if (await this.#isTrue(known, page, turn)) return known
    this.#distrusted = true
    this.#sink.contradicts(known.target)
    return undefined
  }

  /** Whether parsing a page in full gives the same result as the fast reading. */
  async #isTrue({ layout, values, timesUs }: Known, page: FetchedPage, turn: Turn): Promise<boolean> {
    let whole: Page
    try {
      whole = await this.#parse(page, turn)
    } catch (error) {
      if (error instanceof PageError) return false
      throw error
    }
    if (whole.samples !== values.length || whole.exemplars.size !== layout.exemplars.size) return false
    for (let i = 0; i < values.length; i++) {
      if (!Object.is(whole.values[i], values[i]) || !Object.is(whole.timesUs[i], timesUs[i])) return false
      const key = layout.keyBytes(i)
      const from = whole.keyFrom[i]!
      const to = whole.keyTo[i]!
      if (to - from !== key.length || page.body.compare(key, 0, key.length, from, to) !== 0) return false
      if (i % lookEvery === 0 && turn.isOver) await turn.next()
    }
    return true
  }

  async #parse({ body, contentType }: FetchedPage, turn: Turn): Promise<Page> {
    const { lenient } = this.#target.job
    const verdict = formatOf(contentType, usualFormat)
    if ('fault' in verdict) throw new PageError(verdict.fault)
    const reader = new PageReader(body, verdict.format, { lenient, maxSamples: 0, maxLineBytes })
    let page = reader.read(bytesAtOnce)
    while (page === undefined) {
      this.#holdAlso(reader.bytes)
      if (turn.isOver) await turn.next()
      page = reader.read(bytesAtOnce)
    }
    if (!('reason' in page)) return page
    throw new PageError(`line ${page.line}: ${page.reason}: ${page.excerpt}`)
  }

  async #readWhole(
    fetched: FetchedPage,
    timeUs: number,
    stop: AbortSignal | undefined,
  ): Promise<{ known: Known; added: number }> {
    const turn = new Turn(undefined, stop)
    const target = this.#target
    const page = await this.#parse(fetched, turn)
    this.wholeReads++
    const layout = new PageLayout(page, samplesAtOnce)
    for (let isDone = page.samples <= samplesAtOnce; !isDone; ) {
      if (turn.isOver) await turn.next()
      isDone = layout.layOut(page, samplesAtOnce)
    }
    // Those of the page are views of larger arrays.
    const values = page.values.slice()
    const timesUs = page.timesUs.slice()
    if (turn.isOver) await turn.next()
    const reading = { target, layout, values, timesUs, resources: this.#resources }
    const resources = await this.#resourcesOf(reading, page.families, turn)
    const old = this.#known
    const isLikeOld = old?.target === target && old.resources === resources
    const made = await this.#piecesOf(
      { ...reading, resources },
      page.families,
      isLikeOld ? old : undefined,
      turn,
    )
    const known: Known = {
      ...reading,
      resources,
      ...made,
      exemplarBytes: exemplarsOf(layout, fetched.body.length),
      contentType: fetched.contentType,
      warning: warningOf(page, fetched.contentType),
    }
    const added = await this.#compare(old, known, timeUs, turn)
    this.#known = known
    this.#resources = resources
    this.#untilGuard = guardEvery
    return { known, added }
  }

  /** Pieces of a page; unchanged ones are taken from the previous page. */
  async #piecesOf(
    reading: Reading,
    families: readonly Family[],
    old: Known | undefined,
    turn: Turn,
  ): Promise<{ pieces: readonly Piece[]; kept: number; bytes: number }> {
    const { prepared } = this.#sink
    const before = new Map(old?.pieces.map(piece => [piece.key, piece]))
    const seen = new Map<string, Set<number>>()
    const pieces: Piece[] = []
    let kept = 0
    let bytes = reading.layout.sizeBytes + reading.values.byteLength + reading.timesUs.byteLength
    for (const part of partsOf(reading.layout, families)) {
      const same = sameOf(part, reading.layout, old, before.get(part.key))
      let piece =
        same === undefined ? await makePiece(part, reading, prepared, turn) : reusedPiece(same, part, reading)
      if (part.hasSiblings) {
        const repeated = repeatedOf(part, piece.ids, seen)
        if (repeated.size > 0) piece = await makePiece(part, reading, prepared, turn, repeated)
      }
      pieces.push(piece)
      kept += piece.kept
      bytes += pieceBytes(piece)
      this.#holdAlso(bytes + reading.resources.bytes)
      this.#checkSamples(reading.target, kept)
      if (turn.isOver) await turn.next()
    }
    return { pieces, kept, bytes: bytes + reading.resources.bytes }
  }

  #checkSamples({ job }: Target, kept: number): void {
    const { samples } = job.limits
    if (samples > 0 && kept > samples)
      throw new PageError(`more than ${samples} samples, the limit of the job (sample_limit)`)
  }

  /** Resources of a page; those of the previous page if `target_info` is unchanged. */
  async #resourcesOf(reading: Reading, families: readonly Family[], turn: Turn): Promise<ResourceTable> {
    const infos: TargetInfo[] = []
    for (const family of families) {
      if (family.name !== 'target_info' && !(family.name === 'target' && family.type === 'info')) continue
      for (let from = family.from; from < family.to && infos.length < mostInfos; from += lookEvery) {
        const series: MappedSeries[] = []
        for (let i = from; i < Math.min(from + lookEvery, family.to); i++) {
          const found = seriesAt(reading, i)
          if (found !== undefined) series.push({ ...found, value: 0, timeUs: 0 })
        }
        infos.push(...mapFamily({ family, series, numbers: 'places' }).targetInfo)
        if (turn.isOver) await turn.next()
      }
    }
    return this.#resources.isFor(infos) ? this.#resources : new ResourceTable(reading.target, infos)
  }

  /** Marks series that are gone as ended. Returns the number of new ones. */
  async #compare(old: Known | undefined, known: Known, timeUs: number, turn: Turn): Promise<number> {
    // Reused pieces have the same array of IDs.
    const here = new Set(known.pieces.map(({ ids }) => ids))
    const stayed = new Set<Float64Array>()
    const gone = new Set<number>()
    const goneFrom: Piece[] = []
    for (const piece of old?.pieces ?? []) {
      if (here.has(piece.ids)) {
        stayed.add(piece.ids)
        continue
      }
      goneFrom.push(piece)
      for (const id of piece.ids) if (id !== 0) gone.add(id)
      if (turn.isOver) await turn.next()
    }
    const fresh = new Set<number>()
    for (const { ids } of known.pieces) {
      if (!stayed.has(ids)) for (const id of ids) if (id !== 0 && !gone.has(id)) fresh.add(id)
      if (turn.isOver) await turn.next()
    }
    if (old === undefined || this.#ended || gone.size === 0) return fresh.size
    for (const { ids } of known.pieces) {
      for (const id of ids) gone.delete(id)
      if (turn.isOver) await turn.next()
    }
    for (const piece of goneFrom) {
      if (gone.size === 0) break
      await reportEnds(this.#sink, piece, old, timeUs, turn, gone)
    }
    return fresh.size
  }

  async #send(known: Known, timeUs: number, stop: AbortSignal | undefined): Promise<void> {
    const isRetry = this.#isRetry
    this.#isRetry = false
    const turn = new Turn(undefined, stop)
    for (const piece of known.pieces) {
      if (isRetry && piece.ready === undefined && !piece.hasExemplars) await this.#renew(piece, known, turn)
      fillPiece(piece, known, timeUs)
      for (const [reason, points] of piece.dropped) this.#sink.drop(reason, points)
      if (piece.ready === undefined) sendWhole(this.#sink, piece, known, timeUs)
      else await this.#sendReady(piece, known, timeUs, turn)
      if (turn.isOver) await turn.next()
    }
  }

  async #sendReady(piece: Piece, known: Known, timeUs: number, turn: Turn): Promise<void> {
    const { prepared } = this.#sink
    const whole = new Set<number>()
    let isNew = false
    for (let i = 0; i < piece.ready!.length; i++) {
      let sent = prepared.send(piece.ready![i]!, piece.numbers, timeUs)
      if (sent === 'old' && !isNew) {
        // The processing of metrics changed, or the preparation expired.
        isNew = true
        const { length } = piece.ready!
        await this.#renew(piece, known, turn)
        if (piece.ready === undefined) {
          for (let rest = i; rest < length; rest++) whole.add(rest)
          break
        }
        sent = prepared.send(piece.ready[i]!, piece.numbers, timeUs)
      }
      if (sent !== 'sent') whole.add(i)
    }
    // All in one call, so that contradictory data is counted once.
    if (whole.size > 0) sendWhole(this.#sink, piece, known, timeUs, whole)
  }

  async #renew(piece: Piece, known: Known, turn: Turn): Promise<void> {
    const fresh = await makePiece(piece, known, this.#sink.prepared, turn, piece.repeated)
    known.bytes -= pieceBytes(piece)
    piece.ready = fresh.ready
    piece.whole = fresh.whole
    known.bytes += pieceBytes(piece)
  }
}

/** Approximate memory of the exemplars of a page of this size. */
function exemplarsOf({ exemplars }: PageLayout, bodyBytes: number): number {
  return exemplars.size === 0 ? 0 : exemplars.size * exemplarBytes + bodyBytes
}

/** The piece of the previous page with the same text as a part. */
function sameOf(
  part: PagePart,
  layout: PageLayout,
  old: Known | undefined,
  piece: Piece | undefined,
): Piece | undefined {
  // Repeated series depend on other pieces. Exemplars are not part of a layout's text.
  if (old === undefined || piece === undefined || piece.repeated.size > 0) return undefined
  if (piece.hasExemplars !== hasSomeExemplar(part, layout)) return undefined
  return isSamePart(layout, part, old.layout, piece) ? piece : undefined
}

/** Samples of a part whose series is in an earlier part of its family. */
function repeatedOf(
  { family: { name } }: PagePart,
  ids: Float64Array,
  seen: Map<string, Set<number>>,
): ReadonlySet<number> {
  const repeated = new Set<number>()
  let before = seen.get(name)
  if (before === undefined) {
    before = new Set()
    seen.set(name, before)
  }
  for (let i = 0; i < ids.length; i++) if (ids[i] !== 0 && before.has(ids[i]!)) repeated.add(i)
  for (let i = 0; i < ids.length; i++) if (ids[i] !== 0) before.add(ids[i]!)
  return repeated
}

function warningOf({ badLines, faults: [first] }: Page, contentType: string): string {
  const verdict = formatOf(contentType, usualFormat)
  const warnings = 'guessed' in verdict && verdict.guessed !== '' ? [verdict.guessed] : []
  if (first !== undefined) {
    const lines = badLines === 1 ? '1 line' : `${badLines} lines`
    warnings.push(`${lines} skipped, first line ${first.line}: ${first.reason}: ${first.excerpt}`)
  }
  return warnings.join('; ')
}
