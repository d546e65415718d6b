import type { Attributes } from './attributes.ts'

/** A frame of a stack. What could not be named says why in `name` and has line 0. */
export interface Frame {
  readonly name: string
  readonly file: string
  readonly line: number
}

/** Leaf first. `values` are parallel to the profile's sample types. */
export interface Sample {
  readonly frames: readonly Frame[]
  readonly value: number
  readonly attributes: Attributes
}

/** Samples of one kind over one interval. Times are microseconds since the Unix epoch. */
export interface Profile {
  readonly kind: 'cpu' | 'memory' | 'off_cpu'
  /** UCUM-like unit of the values, for example `nanoseconds`, `count`, `bytes`. */
  readonly unit: string
  readonly startUs: number
  readonly durationUs: number
  readonly samples: readonly Sample[]
}
