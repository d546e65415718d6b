import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { DurationDesc } from '../../../foundation/model/call.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { overflowAttribute } from '../../../foundation/model/metric-declaration.ts'
import type { DurationSeries, HistogramForm, Scale } from './duration-series.ts'

/** A node in the tree of dimensions: the series that ends here, and the keys that may follow. */
class Place {
  series: DurationSeries | undefined
  next: Branch | undefined
}

/** The values of one key. `other` has another key, because a protocol leaves out dimensions that do not apply. */
class Branch {
  readonly key: string
  readonly places = new Map<AttributeValue, Place>()
  readonly other: Branch | undefined
  constructor(key: string, other: Branch | undefined) {
    this.key = key
    this.other = other
  }
}

/** The series of one resource and metric, in a tree: a protocol gives its keys in a fixed order. */
export class HistogramTable {
  /** The series for calls without a series of their own. */
  overflow: DurationSeries | undefined
  #all: DurationSeries[] = []
  #root = new Place()
  readonly #scale: Scale
  readonly #form: HistogramForm

  constructor(scale: Scale, form: HistogramForm) {
    this.#scale = scale
    this.#form = form
  }

  /** In order of creation, without the overflow series. */
  get series(): readonly DurationSeries[] {
    return this.#all
  }

  find(dimensions: Attributes): DurationSeries | undefined {
    let place = this.#root
    for (let i = 0; i < dimensions.size; i++) {
      const next = branchOf(place, dimensions.keys[i]!)?.places.get(dimensions.values[i]!)
      if (next === undefined) return undefined
      place = next
    }
    return place.series
  }

  /** Adds a series that `find` did not find. */
  add(dimensions: Attributes, startUs: number): DurationSeries {
    const attributes = new Attributes()
    for (let i = 0; i < dimensions.size; i++) attributes.add(dimensions.keys[i]!, dimensions.values[i]!)
    const series = this.#form.create(attributes, startUs, this.#scale)
    this.#insert(series)
    return series
  }

  addOverflow(startUs: number): DurationSeries {
    this.overflow = this.#form.create(Attributes.of({ [overflowAttribute]: true }), startUs, this.#scale)
    return this.overflow
  }

  /** Removes the newest series until `most` are left, and returns the removed ones. */
  cut(most: number): readonly DurationSeries[] {
    const all = this.#all
    this.#all = []
    this.#root = new Place()
    for (const series of all.slice(0, most)) this.#insert(series)
    return all.slice(most)
  }

  metric(desc: DurationDesc, timeUs: number): Metric {
    const exported = this.overflow === undefined ? this.#all : [...this.#all, this.overflow]
    return this.#form.metric(desc, exported, timeUs)
  }

  /** Marks everything as exported. Returns whether there was anything new. */
  markReported(): boolean {
    let isNew = false
    for (const series of this.overflow === undefined ? this.#all : [...this.#all, this.overflow]) {
      if (series.unreported === 0) continue
      isNew = true
      series.markReported()
    }
    return isNew
  }

  #insert(series: DurationSeries): void {
    const { attributes } = series
    let place = this.#root
    for (let i = 0; i < attributes.size; i++) {
      const key = attributes.keys[i]!
      const value = attributes.values[i]!
      let branch = branchOf(place, key)
      if (branch === undefined) {
        branch = new Branch(key, place.next)
        place.next = branch
      }
      let next = branch.places.get(value)
      if (next === undefined) {
        next = new Place()
        branch.places.set(value, next)
      }
      place = next
    }
    place.series = series
    this.#all.push(series)
  }
}

function branchOf(place: Place, key: string): Branch | undefined {
  let branch = place.next
  while (branch !== undefined && branch.key !== key) branch = branch.other
  return branch
}
