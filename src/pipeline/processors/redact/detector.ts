import type { RuleType } from './settings.ts'
import type { Stretch } from './stretch.ts'

/** What surrounds a text tells: its attribute's key names this. */
export const Hint = { phone: 1, ssn: 2 } as const

/** Where a detector found something, filled again and again. Offsets are those of the units it was given. */
export interface Find {
  /** Set by detectors of more than one type. */
  type: RuleType
  start: number
  /** Behind the last unit. */
  end: number
  /** Of the run of digits at which the detector is asked; 0 at other triggers. */
  run: number
  /** Bits of `Hint`. */
  hints: number
  /** Of this text: without the end of a value, and without a cookie. */
  readonly values: Stretch
  readonly cookies: Stretch
  /** Length of what stands at `at` in place of something that was redacted, 0 where nothing does. */
  redactedAt(units: Uint8Array, at: number): number
}

/**
 * Finds one form of personal data. Detectors are asked at their triggers, in one pass over the text for
 * all of them, and look a bounded number of units to either side, so that the whole takes linear time. They allocate
 * nothing. `units` is a text as `characters.ts` has it.
 */
export interface Detector {
  readonly types: readonly [RuleType, ...RuleType[]]
  /** ASCII characters at which it is asked, no digits among them. */
  readonly triggers: string
  /**
   * Whether it is asked at the beginning of a run of so many digits (21 stands for more) where a word may begin. `next`
   * follows the run: one of `.`, `-`, space, `/` and `)`, or '' for anything else that is no part of a word.
   */
  readonly runs?: (digits: number, next: string) => boolean
  /** Asked at runs of digits that follow two capital letters. */
  readonly afterCapitals?: boolean
  /** Whether it found something, and then where. */
  find(units: Uint8Array, at: number, find: Find): boolean
}
