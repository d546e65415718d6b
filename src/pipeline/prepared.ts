import type { MetricTemplate, PreparedMetric } from '../model/prepared-metric.ts'
import type { Resource, Scope } from '../model/resource.ts'

export interface PreparedPart {
  readonly resource: Resource
  readonly scope: Scope
  readonly template: MetricTemplate
  /** What it came to last; valid until it is filled again. */
  filled: Uint8Array | undefined
}

/** Spreads ends over this part of the time on both sides, so that what began together does not end together. */
const spread = 0.2

/** Nearly all lose nothing, and there are many of them. */
const nothing: ReadonlyMap<string, number> = new Map()

/** An item that passed all that is done to items, with what its intake has to know to send it. */
export class Prepared implements PreparedMetric {
  readonly parts: PreparedPart[] = []
  lost: ReadonlyMap<string, number> = nothing
  /** Of the item, lost ones included. */
  readonly points: number
  /** The state of the intake for which it was prepared. */
  readonly epoch: number
  /** The process is to be asked each time whether it lets the item pass. */
  asksAgain = false
  /** Of `performance.now()`. */
  #untilMs = Number.POSITIVE_INFINITY

  constructor(points: number, epoch: number) {
    this.points = points
    this.epoch = epoch
  }

  lose(reason: string, points: number): void {
    this.lost = new Map([...this.lost, [reason, (this.lost.get(reason) ?? 0) + points]])
  }

  /** Has it become old after about so many milliseconds. */
  lastFor(ms: number): void {
    if (ms < Number.POSITIVE_INFINITY)
      this.#untilMs = performance.now() + ms * (1 - spread + 2 * spread * Math.random())
  }

  get isOld(): boolean {
    return this.#untilMs < Number.POSITIVE_INFINITY && performance.now() > this.#untilMs
  }

  /** Puts the numbers into all parts. False: they contradict each other somewhere. */
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
