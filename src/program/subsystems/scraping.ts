import { dirname } from 'node:path'
import { targetsDocument as schema } from '../../view/api/scraping-schemas.ts'
import { off } from '../agent/off.ts'
import { Scraping } from '../agent/scraping.ts'
import { sourcesOf, targetCounts, targetsDocument } from '../agent/scraping-view.ts'
import { value, values } from '../agent/self-metrics.ts'
import { type Fact, fact, type Subsystem } from '../agent/subsystem.ts'
import { exporting } from './exporting.ts'
import { memory } from './memory.ts'

export const scraping: Subsystem<Scraping> = {
  name: 'scraping',
  keys: ['collectors.prometheus'],
  banner: 'always',
  source: { id: 'scraping', name: 'scraped targets', signal: 'metrics' },
  create: agent => {
    const { config, options } = agent
    const { filePath } = options.loaded
    return new Scraping({
      config,
      baseDir: filePath === null ? process.cwd() : dirname(filePath),
      pipeline: agent.of(exporting).pipeline,
      log: options.log,
      memory: agent.of(memory),
    })
  },
  start: own => own.start(),
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  state: (own, { collectors: { prometheus } }) => {
    if (!prometheus.enabled) return off('collectors.prometheus.enabled')
    if (!own.isOn)
      return {
        state: 'off',
        detail: 'no targets in collectors.prometheus',
        hint: 'add targets to collectors.prometheus.scrape_configs',
      }
    const { faults, size } = own
    if (faults.length > 0 && size.jobs === 0) return { state: 'failed', faults }
    return {
      state: 'ok',
      detail: `${size.jobs} ${size.jobs === 1 ? 'job' : 'jobs'}, ${size.targets} targets so far; see /status/targets`,
      faults,
      items: own.totals.samples,
      facts: () => factsOf(own),
    }
  },
  pages: [
    {
      path: '/status/targets',
      id: 'getTargets',
      summary: 'Scraped targets.',
      schema,
      access: 'private',
      costly: true,
      read: targetsDocument,
    },
  ],
  metrics: {
    scrape_targets: values(
      'health',
      'Targets by result of their last scrape; dropped targets are not scraped by this agent.',
      ({ jobs }) => targetCounts(jobs),
    ),
    scrapes_total: value('Completed scrapes of targets.', ({ totals }) => totals.scrapes),
    scrape_failures_total: value('Failed scrapes.', ({ totals }) => totals.failures),
    scrapes_missed_total: value(
      'Scrapes skipped because the previous one was still running.',
      ({ totals }) => totals.missed,
    ),
    scrape_samples_total: value('Samples received from targets.', ({ totals }) => totals.samples),
    scrape_whole_reads_total: value(
      'Pages with different series than the page before.',
      ({ totals }) => totals.wholeReads,
    ),
    scrape_contradictions_total: value(
      'Pages that svc misread: a bug in svc.',
      ({ totals }) => totals.contradictions,
    ),
    scrape_source_connected: {
      help: 'Whether a source of targets answers: 1 if it does.',
      labels: ['job', 'kind'],
      collect: ({ jobs }, emit) => {
        for (const [job, kind, connected] of sourcesOf(jobs)) emit(Number(connected), job, kind)
      },
    },
  },
}

function factsOf({
  size: { jobs, targets },
  totals: { scrapes, failures, missed },
}: Scraping): readonly Fact[] {
  return [
    fact('jobs', jobs),
    fact('targets', targets),
    fact('scrapes', scrapes),
    fact('failed', failures),
    fact('missed', missed),
  ]
}
