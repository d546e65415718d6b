import type { DropReasonName } from '../foundation/model/drop-reasons.ts'
import type { MetricTemplate, PreparedMetric } from '../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../foundation/model/resource.ts'

export interface PreparedPart {
  readonly resource: Resource
  readonly scope: Scope
  readonly template: MetricTemplate
  /** Last encoded bytes; valid until the next fill. */
  filled: Uint8Array | undefined
}

/** Random spread of lifetimes in both directions, so that preparations made together do not expire together. */
const spread = 0.2

/** Shared empty map: nearly all lose nothing. */
const nothing: ReadonlyMap<DropReasonName, number> = new Map()

/** A processed item, with the data that its intake needs to send it. */
export class Prepared implements PreparedMetric {
  readonly parts: PreparedPart[] = []
  dropped: ReadonlyMap<DropReasonName, number> = nothing
  /** Points of the item, lost ones included. */
  readonly points: number
  /** State of the intake for which it was prepared. */
  readonly epoch: number
  /** Whether the processor must be asked each time whether the item may pass. */
  asksAgain = false
  /** End of validity, by `performance.now()`. */
  #untilMs = Number.POSITIVE_INFINITY

  constructor(points: number, epoch: number) {
    this.points = points
    this.epoch = epoch
  }

  drop(reason: DropReasonName, points: number): void {
    this.dropped = new Map([...this.dropped, [reason, (this.dropped.get(reason) ?? 0) + points]])
  }

  /** Sets the validity to about this time. */
  lastFor(ms: number): void {
    if (ms < Number.POSITIVE_INFINITY)
      this.#untilMs = performance.now() + ms * (1 - spread + 2 * spread * Math.random())
  }

  get isOld(): boolean {
    return this.#untilMs < Number.POSITIVE_INFINITY && performance.now() > this.#untilMs
  }

  /** Writes the numbers into all parts. False if they contradict each other. */
  fill(values: Float64Array, timeUs: number): boolean {
    const { parts } = this
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      part.filled = part.template.fill(values, timeUs)
      if (part.filled === undefined) return false
    }
    return true
  }
}
