import type { Place } from '../../../../foundation/schema/value.ts'
import type { ScrapeLimits } from '../scrape-job.ts'

/** What holds for every job that says nothing else. Times in milliseconds, sizes in bytes. */
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

/** What is wrong with jobs, or what of them changes nothing. */
export interface JobFault {
  /** The key, such as `collectors.prometheus.scrape_configs[2].scrape_timeout`. */
  readonly path: string
  readonly message: string
  readonly hint: string
  /** Undefined: it was read from no text. */
  readonly place?: Place | undefined
}

/** Where all of this stands in the configuration. */
export const root = 'collectors.prometheus'

/** Limits where a job has none of its own. */
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
