// The agent's metrics about itself. Each subsystem declares its own in a table by name; values are read when a page is
// written.

import { type EmitSeries, Histogram, Registry } from '../../foundation/lib/registry.ts'
import { securityMetrics } from '../../foundation/model/security.ts'

/**
 * A metric of a subsystem whose running part is `Own`. A name that ends in `_total` is a counter, any other a gauge.
 */
export interface Metric<Own> {
  /** If absent, another subsystem declares the metric, and these are further series of it. */
  readonly help?: string
  readonly labels?: readonly string[]
  collect?(own: Own, emit: EmitSeries): void
  /** Instead of `collect`: a histogram without labels. */
  histogram?(own: Own): Histogram | undefined
}

export type MetricsOf<Own> = Readonly<Record<string, Metric<Own>>>

/** A number; undefined: no value now. */
export function value<Own>(help: string, read: (own: Own) => number | boolean | undefined): Metric<Own> {
  return {
    help,
    collect: (own, emit) => {
      const now = read(own)
      if (now !== undefined) emit(Number(now))
    },
  }
}

/** Numbers by one label. */
export function values<Own>(
  label: string,
  help: string,
  read: (own: Own) => Readonly<Record<string, number>> | Iterable<readonly [string, number]> | undefined,
): Metric<Own> {
  return {
    help,
    labels: [label],
    collect: (own, emit) => {
      const now = read(own) ?? []
      for (const [of, each] of Symbol.iterator in now ? now : Object.entries(now)) emit(each, of)
    },
  }
}

/** Numbers by two labels. */
export function nested<Own>(
  read: (own: Own) => Readonly<Record<string, Readonly<Record<string, number>> | undefined>>,
): Metric<Own> {
  return {
    collect: (own, emit) => {
      for (const [outer, numbers = {}] of Object.entries(read(own)))
        for (const [inner, each] of Object.entries(numbers)) emit(each, outer, inner)
    },
  }
}

/** Used without observations. */
const none = new Histogram([])

export class SelfMetrics {
  readonly registry = new Registry()
  readonly #namespace: string
  /** By metric, from all subsystems with series of it. */
  readonly #collects = new Map<string, ((emit: EmitSeries) => void)[]>()
  readonly #syncs: (() => void)[] = []
  readonly #failed: (what: string, error: unknown) => void
  #isCurrent = false

  /** The namespace precedes each name. Unreadable metrics are omitted from the page and reported. */
  constructor(namespace: string, failed: (what: string, error: unknown) => void) {
    this.#namespace = namespace
    this.#failed = failed
    // Counted where the events are found.
    for (const { name, help, labels } of securityMetrics)
      this.registry.counter(this.named(name), help, [...labels])
  }

  named(name: string): string {
    return `${this.#namespace}_${name}`
  }

  /** `own` is only called when a page is written. */
  add(name: string, metric: Metric<unknown>, own: () => unknown): void {
    const { help, labels = [] } = metric
    const read = <Read>(of: () => Read) => this.#read(`read metric ${name}`, of)
    if (metric.histogram !== undefined)
      this.registry.observed(this.named(name), help!, () => read(() => metric.histogram!(own())) ?? none)
    if (metric.collect === undefined) return
    const collects = this.#collects.get(name) ?? []
    this.#collects.set(name, collects)
    collects.push(emit => read(() => metric.collect!(own(), emit)))
    if (help === undefined) return
    const type = name.endsWith('_total') ? 'counter' : 'gauge'
    this.registry.collector(this.named(name), help, type, labels, emit => {
      this.#sync()
      for (const collect of collects) collect(emit)
    })
  }

  /**
   * Called before the first value of a page is read: a page is written in one go, so that all of its numbers are
   * consistent.
   */
  before(subsystem: string, sync: () => void): void {
    this.#syncs.push(() => this.#read(`update the counts of ${subsystem}`, sync))
  }

  #read<Read>(what: string, read: () => Read): Read | undefined {
    try {
      return read()
    } catch (error) {
      this.#failed(what, error)
      return undefined
    }
  }

  #sync(): void {
    if (this.#isCurrent) return
    this.#isCurrent = true
    queueMicrotask(() => {
      this.#isCurrent = false
    })
    for (const sync of this.#syncs) sync()
  }
}
