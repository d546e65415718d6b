import type { Report } from '../foundation/schema/problem.ts'
import type { Settings } from '../foundation/schema/tree.ts'
import { jobsOf } from '../signals/metrics/scraping/jobs/jobs.ts'
import type { Config } from './schema.ts'

const root = 'collectors.prometheus'

/** Nothing is expanded here: `${1}` is a group of the pattern, and `${name}` may be one. */
const relabelling = /^collectors\.prometheus\.(?:.*\.)?(?:metric_)?relabel_configs\[\d+\]\./

export function isLiteral(key: string): boolean {
  return relabelling.test(key)
}

/** Checks across the keys of scraping. Returns the settings that have no effect. */
export function checkScraping({ collectors }: Config, settings: Settings, report: Report): readonly string[] {
  const { faults, notes } = jobsOf(collectors.prometheus, { baseDir: '/' })
  for (const { path, message, hint, place = settings.get(`${root}.scrape_configs`)?.place } of faults)
    if (place) report.problem(place, path, `${message}; ${hint}`)
  return notes
}
