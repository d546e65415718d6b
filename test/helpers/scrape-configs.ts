// A text of `scrape_configs` read as the configuration reads it.

import { reportInto } from '../../src/foundation/schema/problem.ts'
import { build, readBranch, type Settings } from '../../src/foundation/schema/tree.ts'
import { fileSource } from '../../src/foundation/schema/value.ts'
import { parseYaml } from '../../src/foundation/schema/yaml-place.ts'
import { type Jobs, jobsOf } from '../../src/signals/metrics/scraping/jobs/jobs.ts'
import { type ScrapingSettings, scraping } from '../../src/signals/metrics/scraping/jobs/settings.ts'

export interface ReadScraping extends Jobs {
  readonly settings: ScrapingSettings
  /** `path: message`, what jobs contradict among them. */
  readonly problems: readonly string[]
}

/** What `collectors.prometheus` gives that has this text. Paths of files begin at /base. */
export function readScraping(text: string): ReadScraping {
  const problems: { key: string; message: string }[] = []
  const report = reportInto(problems as never)
  const settings: Settings = new Map()
  const value = parseYaml(fileSource('jobs.yml', text), {}, report)
  if (value) readBranch(scraping, value, { written: '', canonical: '' }, settings, report)
  const built = build(scraping, settings)
  const jobs = jobsOf(built, { baseDir: '/base' })
  return {
    ...jobs,
    settings: built,
    problems: [
      ...problems.map(({ key, message }) => `${key}: ${message}`),
      ...jobs.faults.map(({ path, message, hint }) => `${path}: ${message}; ${hint}`),
    ],
  }
}
