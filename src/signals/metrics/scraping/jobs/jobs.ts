import type { ScrapeJob } from '../scrape-job.ts'
import { type JobFault, root } from './defaults.ts'
import { ownJobs } from './own-jobs.ts'
import { jobOf } from './scrape-config.ts'
import type { ScrapingSettings } from './settings.ts'

export type { JobFault } from './defaults.ts'

export interface Jobs {
  /** Those of `scrape_configs` first. Names are unique. */
  readonly jobs: readonly ScrapeJob[]
  readonly faults: readonly JobFault[]
  /** Settings without effect, one sentence each. */
  readonly notes: readonly string[]
}

export interface JobsContext {
  /** Base of relative paths in `scrape_configs`: the directory of the configuration file. */
  readonly baseDir: string
}

/** Jobs of the settings in `collectors.prometheus`. */
export function jobsOf(settings: ScrapingSettings, { baseDir }: JobsContext): Jobs {
  const made = settings.scrape_configs.map((written, i) =>
    jobOf(written, `${root}.scrape_configs[${i}]`, settings, baseDir),
  )
  const foreign = made.map(({ job }) => job)
  return {
    jobs: [...foreign, ...ownJobs(settings, new Set(foreign.map(({ name }) => name)))],
    faults: made.flatMap(({ faults }) => faults),
    notes: made.flatMap(({ notes }) => notes),
  }
}
