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

/** A page that was read, with what is known of pages that say the same. */
interface Known extends Reading {
  readonly contentType: string
  readonly pieces: readonly Piece[]
  /** Of the memory that all of it takes, but for the exemplars of its last page. */
  bytes: number
  exemplarBytes: number
  readonly kept: number
  readonly warning: string
}

/** Every so many pages is read as a whole as well, and both readings are compared. */
const guardEvery = 64
const maxLineBytes = 2 ** 20
/** Of a page whose Content-Type tells none. */
const usualFormat = 'text'
/** Of other targets that a page tells something about. */
const mostInfos = 10_000

/** Between two looks at the clock. */
const samplesAtOnce = 5000
const bytesAtOnce = 128 * 1024
/** Series between two looks at the clock. */
const lookEvery = 64

/**
 * The series of one target: what they were made into, for as long as its page says the same but for numbers. One call
 * at a time, but for `change`.
 */
export class TargetSeries implements PageHolder {
  /** Pages that were read as a whole because something but numbers differed. */
  wholeReads = 0
  readonly #sink: SeriesSink
  readonly #room: PageRoom
  #target: Target
  #resources: ResourceTable
  #known: Known | undefined
  #untilGuard = guardEvery
  /** Metrics that come whole are tried anew. */
  #isRetry = false
  /** The fast read was wrong once: it is not trusted again. */
  #distrusted = false
  /** All series were told to have ended. */
  #ended = true
  /** Nothing is kept any more. */
  #closed = false

  constructor(sink: SeriesSink, target: Target, room = new PageRoom()) {
    this.#sink = sink
    this.#room = room
    this.#target = target
    this.#resources = new ResourceTable(target)
  }

  /** That of the target itself. */
  get resource(): Resource {
    return this.#resources.own
  }

  /** The next page is read by these settings. The target is the same by its id. */
  change(target: Target): void {
    this.#target = target
  }

  /**
   * Takes a page and hands on its metrics. Rejects with the reason why the scrape failed (`PageError`); then nothing was
   * handed on. Rejects as well when `stop` is raised, wherever it stands.
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

  /** Tells that all series ended, if they have not. */
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

  /** Gives all memory back. What is under way may still end. */
  close(): void {
    this.#closed = true
    this.#room.leave(this)
  }

  /** Lets go of metrics that are ready: they are made from their text at each scrape, until that is tried anew. */
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

  /** Says what is kept from now on. */
  #settle(): void {
    const { bytes = 0, exemplarBytes = 0 } = this.#known ?? {}
    if (!this.#closed) this.#room.hold(this, bytes + exemplarBytes)
  }

  /** The same for what is made beside what is kept: most of that goes on in it, so the larger counts. */
  #holdAlso(bytes: number): void {
    this.#hold(Math.max(this.#known?.bytes ?? 0, bytes))
  }

  /** Throws where there is no room for so much. */
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

  /** Whether the whole read of a page says what the fast one did. */
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
    // Those of the page are parts of arrays with room for more.
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

  /** The pieces of a page: those of the page before, where they are the same. */
  async #piecesOf(
    reading: Reading,
    families: readonly Family[],
    old: Known | undefined,
    turn: Turn,
  ): Promise<{ pieces: readonly Piece[]; kept: number; bytes: number }> {
    const { prepared } = this.#sink
    const before = new Map(old?.pieces.map(piece => [piece.key, piece]))
    const told = new Map<string, Set<number>>()
    const pieces: Piece[] = []
    let kept = 0
    let bytes = reading.layout.sizeBytes + reading.values.byteLength + reading.timesUs.byteLength
    for (const part of partsOf(reading.layout, families)) {
      const same = sameOf(part, reading.layout, old, before.get(part.key))
      let piece =
        same === undefined ? await makePiece(part, reading, prepared, turn) : reusedPiece(same, part, reading)
      if (part.hasSiblings) {
        const repeated = repeatedOf(part, piece.ids, told)
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

  /** The resources of a page: those of the page before, where `target_info` says the same. */
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

  /** Tells the end of series that are no more. Returns how many are new. */
  async #compare(old: Known | undefined, known: Known, timeUs: number, turn: Turn): Promise<number> {
    // Pieces that stayed have the same numbers.
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
        // What is done to metrics has changed, or was long ago.
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
    // At once, so that what contradicts itself is counted once.
    if (whole.size > 0) sendWhole(this.#sink, piece, known, timeUs, whole)
  }

  async #renew(piece: Piece, known: Known, turn: Turn): Promise<void> {
    const anew = await makePiece(piece, known, this.#sink.prepared, turn, piece.repeated)
    known.bytes -= pieceBytes(piece)
    piece.ready = anew.ready
    piece.whole = anew.whole
    known.bytes += pieceBytes(piece)
  }
}

/** About what the exemplars of a page of so many bytes take. */
function exemplarsOf({ exemplars }: PageLayout, bodyBytes: number): number {
  return exemplars.size === 0 ? 0 : exemplars.size * exemplarBytes + bodyBytes
}

/** The piece of the page before that says the same as a part of this one. */
function sameOf(
  part: PagePart,
  layout: PageLayout,
  old: Known | undefined,
  piece: Piece | undefined,
): Piece | undefined {
  // What is repeated hangs on other pieces. Exemplars are no part of a layout's text.
  if (old === undefined || piece === undefined || piece.repeated.size > 0) return undefined
  if (piece.hasExemplars !== hasSomeExemplar(part, layout)) return undefined
  return isSamePart(layout, part, old.layout, piece) ? piece : undefined
}

/** Which samples of a part tell series that parts of its family before it told. */
function repeatedOf(
  { family: { name } }: PagePart,
  ids: Float64Array,
  told: Map<string, Set<number>>,
): ReadonlySet<number> {
  const repeated = new Set<number>()
  let before = told.get(name)
  if (before === undefined) {
    before = new Set()
    told.set(name, before)
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
