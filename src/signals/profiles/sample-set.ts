import { Attributes } from '../../foundation/model/attributes.ts'
import type { Frame, Sample, SpanLink } from '../../foundation/model/profile.ts'

/** Samples of a profile. Samples that the kernel distinguishes but that have equal names are merged. */
export class SampleSet {
  readonly #samples = new Map<string, { -readonly [K in keyof Sample]: Sample[K] }>()
  readonly #numbers = new Map<Frame | SpanLink, number>()
  readonly #threads = new Map<string, Attributes>()

  add(frames: readonly Frame[], thread: string, link: SpanLink | undefined, value: number): void {
    const key = `${frames.map(frame => this.#number(frame)).join()} ${link === undefined ? '' : this.#number(link)} ${thread}`
    const known = this.#samples.get(key)
    if (known !== undefined) {
      known.value += value
      return
    }
    let attributes = this.#threads.get(thread)
    if (attributes === undefined) {
      attributes = Attributes.of(thread === '' ? {} : { 'thread.name': thread })
      this.#threads.set(thread, attributes)
    }
    this.#samples.set(key, { frames, value, attributes, ...(link === undefined ? {} : { link }) })
  }

  list(): Sample[] {
    return [...this.#samples.values()]
  }

  /** Frames and links are shared objects, so identity means equality. */
  #number(thing: Frame | SpanLink): number {
    const known = this.#numbers.get(thing)
    if (known !== undefined) return known
    this.#numbers.set(thing, this.#numbers.size)
    return this.#numbers.size - 1
  }
}
