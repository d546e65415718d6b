// Items as they leave the processors, for viewers. Costs nothing without them.

import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { requestToJson } from '../../pipeline/exporters/otlp/json.ts'
import type { TapLine } from '../../view/api/ui/documents.ts'
import type { Live, TapQuery } from '../../view/api/ui/source.ts'
import type { UiParts } from './parts.ts'
import { Summaries, type Summary, type Tapped, type TappedItem } from './tapped-items.ts'

/** Maximum number of items between two updates; others are counted. */
const mostItems = 200
/** Maximum size of requests waiting to be written as JSON. */
const mostBytes = 128 * 1024
const mostItemBytes = 256 * 1024
const maxText = 300

/** Starts at its first call. */
export function tap(parts: UiParts, query: TapQuery): Live<TapLine> {
  return new Tap(parts, query)
}

interface Waiting {
  readonly summary: Summary
  /** An export request with only this item; undefined if not requested. */
  readonly request: Uint8Array | undefined
}

class Tap implements Live<TapLine> {
  readonly everyMs = 250
  readonly #parts: UiParts
  readonly #query: TapQuery
  readonly #tapped: Tapped
  #waiting: Waiting[] = []
  #bytes = 0
  #skipped = 0
  #stop: (() => void) | undefined
  #closed = false

  constructor(parts: UiParts, query: TapQuery) {
    this.#parts = parts
    this.#query = query
    this.#tapped = new Summaries(parts.shown, maxText).of(query.signal)
  }

  next(): readonly TapLine[] {
    if (this.#stop === undefined && !this.#closed)
      this.#stop = this.#parts.outlets.pipeline.watch(this.#query.signal, (resource, item, scope) =>
        this.#see(resource, item, scope),
      )
    const waiting = this.#waiting
    const skipped = this.#skipped
    this.#waiting = []
    this.#bytes = 0
    this.#skipped = 0
    const lines: TapLine[] = waiting.map(({ summary, request }) => ({
      kind: 'item',
      signal: this.#query.signal,
      ...summary,
      ...(request !== undefined && { otlp: JSON.parse(requestToJson(this.#query.signal, request)) }),
    }))
    if (skipped > 0) lines.push({ kind: 'skipped', items: skipped })
    return lines
  }

  close(): void {
    this.#closed = true
    this.#stop?.()
    this.#waiting = []
  }

  /** Called for each item of the signal; its memory is reused. */
  #see(resource: Resource, item: TappedItem, scope: Scope): void {
    const { service, errors, min_ms } = this.#query
    if (service !== '' && resource.attributes.get('service.name') !== service) return
    if (!this.#tapped.matches(item, errors, min_ms)) return
    if (this.#waiting.length >= mostItems || this.#bytes >= mostBytes) {
      this.#skipped++
      return
    }
    try {
      const request = this.#query.otlp ? this.#tapped.request(resource, scope, item) : undefined
      if (request !== undefined && request.length > mostItemBytes) {
        this.#skipped++
        return
      }
      this.#bytes += request?.length ?? 0
      this.#waiting.push({ summary: this.#tapped.summary(resource, item), request })
    } catch {
      // An item that cannot be encoded cannot be shown; this must not affect the sender.
      this.#skipped++
    }
  }
}
