import type { RuleType } from './settings.ts'
import type { Stretch } from './stretch.ts'

/** Hints from the context: what the attribute's key names. */
export const Hint = { phone: 1, ssn: 2 } as const

/** Result of a detector, reused. Offsets are those of its units. */
export interface Find {
  /** Set by detectors with several types. */
  type: RuleType
  start: number
  /** Exclusive. */
  end: number
  /** Length of the run of digits that triggered the detector; 0 for other triggers. */
  run: number
  /** Bits of `Hint`. */
  hints: number
  /** State of this text for searches: no end of a value, and no cookie, in these ranges. */
  readonly values: Stretch
  readonly cookies: Stretch
  /** Length of the replacement of redacted text at `at`; 0 if there is none. */
  redactedAt(units: Uint8Array, at: number): number
}

/**
 * Detects one form of personal data. Detectors are called at their triggers, in one pass over the text for all of them,
 * and check a bounded number of units on either side, so that the whole takes linear time. They allocate nothing.
 * `units` is a text as in `characters.ts`.
 */
export interface Detector {
  readonly types: readonly [RuleType, ...RuleType[]]
  /** ASCII characters at which it is called; no digits. */
  readonly triggers: string
  /** Whether it can match at a trigger with this unit before it; without it always. Saves most calls. */
  readonly after?: (before: number, trigger: string) => boolean
  /**
   * Whether it is called at the start of a run of this many digits (21 means more) where a word may begin. `next` is
   * the character after the run: one of `.`, `-`, space, `/` and `)`, or '' for anything else that does not continue a
   * word.
   */
  readonly runs?: (digits: number, next: string) => boolean
  /** Whether it is called at runs of digits after two capital letters. */
  readonly afterCapitals?: boolean
  /** Whether there is a match; if so, sets its range. */
  find(units: Uint8Array, at: number, find: Find): boolean
}
