import type { Place } from '../../../../foundation/schema/value.ts'
import type { ScrapeLimits } from '../scrape-job.ts'

/** Defaults for all jobs. Times in milliseconds, sizes in bytes. */
export interface JobDefaults {
  readonly scrape_interval: number
  readonly scrape_timeout: number
  readonly sample_limit: number
  readonly body_size_limit: number
  readonly honor_labels: boolean
  readonly honor_timestamps: boolean
  readonly lenient: boolean
  readonly external_labels: Readonly<Record<string, string>>
}

/** A fault of a job, or a key without effect. */
export interface JobFault {
  /** Path of the key, such as `collectors.prometheus.scrape_configs[2].scrape_timeout`. */
  readonly path: string
  readonly message: string
  readonly hint: string
  /** Undefined if it was not read from text. */
  readonly place?: Place | undefined
}

/** Path of this branch in the configuration. */
export const root = 'collectors.prometheus'

/** Limits of jobs without their own. */
export function usualLimits(defaults: JobDefaults): ScrapeLimits {
  return {
    bodyBytes: defaults.body_size_limit,
    samples: defaults.sample_limit,
    labels: 0,
    labelNameLength: 0,
    labelValueLength: 0,
    targets: 0,
  }
}
