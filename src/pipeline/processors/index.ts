import { limitAttributes } from './limit-attributes.ts'
import { limitRate } from './limit-rate.ts'
import { limitSeries } from './limit-series.ts'
import { redact } from './redact.ts'
import { transform } from './transform.ts'

/**
 * In the order in which an item passes them. First what bounds all later work; redaction sees what transformation
 * made, and comes before anything is kept; limits count what would be sent.
 */
export const processors = [limitAttributes, transform, redact, limitSeries, limitRate] as const
