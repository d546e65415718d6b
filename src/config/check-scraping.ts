import type { Report } from '../foundation/schema/problem.ts'
import type { Settings } from '../foundation/schema/tree.ts'
import { jobsOf } from '../signals/metrics/scraping/jobs/jobs.ts'
import type { Config } from './schema.ts'

const root = 'collectors.prometheus'

/** Where nothing is replaced: `${1}` is a group of the pattern there, and `${name}` may be one. */
const relabelling = /^collectors\.prometheus\.(?:.*\.)?(?:metric_)?relabel_configs\[\d+\]\./

export function isLiteral(key: string): boolean {
  return relabelling.test(key)
}

/** Checks what no key of the scraping can see alone. Returns what was written and has no effect. */
export function checkScraping({ collectors }: Config, settings: Settings, report: Report): readonly string[] {
  const { faults, notes } = jobsOf(collectors.prometheus, { baseDir: '/' })
  for (const { path, message, hint, place = settings.get(`${root}.scrape_configs`)?.place } of faults)
    if (place) report.problem(place, path, `${message}; ${hint}`)
  return notes
}
