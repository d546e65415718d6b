import { limitAttributes } from './limit-attributes.ts'
import { limitRate } from './limit-rate.ts'
import { limitSeries } from './limit-series.ts'
import { redact } from './redact.ts'
import { transform } from './transform.ts'

/**
 * In the order in which items pass them: attribute limits first, as they bound all later work; redaction after
 * transformation, so that it covers its results, and before anything is remembered; the other limits last, as they
 * count what would be sent.
 */
export const processors = [limitAttributes, transform, redact, limitSeries, limitRate] as const
