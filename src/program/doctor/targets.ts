import { dirname } from 'node:path'
import { createLogger, errorText } from '../../foundation/lib/logger.ts'
import type { Finding } from '../../kernel/need.ts'
import { formatOf } from '../../signals/metrics/scraping/fetch/page-format.ts'
import { jobsOf } from '../../signals/metrics/scraping/jobs/jobs.ts'
import { readPage } from '../../signals/metrics/scraping/page-reader.ts'
import type { ScrapeJob, SourceSettings, TargetGroup } from '../../signals/metrics/scraping/scrape-job.ts'
import { openSource } from '../../signals/metrics/scraping/sources/index.ts'
import type { Target } from '../../signals/metrics/scraping/target.ts'
import { targetsOf } from '../../signals/metrics/scraping/targets.ts'
import { openTarget } from '../agent/scraping.ts'
import { check } from './check.ts'

type Fault = 'down' | 'silent' | 'none' | 'absent'
type Found = Finding<Fault>

const lookMs = 20
/** Per job; an agent may have thousands of targets. */
const mostTried = 20
const atOnce = 8
/** Failed targets to list per job. */
const mostTold = 3
const maxLineBytes = 2 ** 20

export const targets = check({
  name: 'targets',
  group: 'scraping',
  summary: 'Target sources answer, and the targets serve metrics',
  reads: 'secrets',
  impact: 'metrics of these targets',
  faults: {
    absent: {
      state: 'note',
      what: 'the configuration names no targets',
      hints: { any: 'none needed: nothing to scrape' },
    },
    down: {
      state: 'limited',
      what: 'a target does not answer, denies access, or does not serve metrics',
      hints: {
        any: 'start it, or allow this host to reach it; test with curl',
        config: 'collectors.prometheus: the address, scheme, metrics_path and credentials of its job',
      },
    },
    silent: {
      state: 'limited',
      what: 'a target source does not answer, so only known targets are scraped',
      hints: {
        any: 'allow this host to reach it, and svc to read it',
        config: 'collectors.prometheus: the address and credentials of the source',
      },
    },
    none: {
      state: 'note',
      what: 'the sources of a job return no targets, or relabelling drops them all',
      hints: { any: 'none needed if targets appear later; else fix the source or relabel_configs' },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { prometheus } = loaded.config.collectors
    if (!prometheus.enabled) return []
    const baseDir = loaded.filePath === null ? process.cwd() : dirname(loaded.filePath)
    const { jobs } = jobsOf(prometheus, { baseDir })
    if (jobs.length === 0) return [{ fault: 'absent', detail: 'collectors.prometheus names no targets' }]
    return (await Promise.all(jobs.map(job => tryJob(job, timeoutMs)))).flat()
  },
})

async function tryJob(job: ScrapeJob, timeoutMs: number): Promise<Found[]> {
  const asked = await Promise.all(job.sources.map(settings => ask(settings, timeoutMs)))
  const findings = asked.flatMap(({ fault }): Found[] =>
    fault === '' ? [] : [{ fault: 'silent', detail: `${job.name}: ${fault}` }],
  )
  const { targets, dropped, droppedTotal } = targetsOf(
    job,
    asked.flatMap(({ groups }) => groups),
  )
  if (targets.length > 0) return [...findings, ...(await tryTargets(job, targets, timeoutMs))]
  if (findings.length > 0) return findings
  const why =
    droppedTotal === 0
      ? ''
      : `: ${droppedTotal} were dropped, the first one because of: ${dropped[0]!.reason}`
  return [{ fault: 'none', detail: `${job.name}: no targets${why}` }]
}

/** The first answer of a source, or why there is none. */
async function ask(
  settings: SourceSettings,
  timeoutMs: number,
): Promise<{ readonly groups: readonly TargetGroup[]; readonly fault: string }> {
  let found: readonly TargetGroup[] | undefined
  const source = openSource(settings, {
    log: silent,
    onGroups: groups => {
      found = groups
    },
  })
  const until = performance.now() + timeoutMs
  source.start()
  try {
    for (;;) {
      const { reason, hint } = source.state
      if (reason !== '') return { groups: found ?? [], fault: hint === '' ? reason : `${reason}: ${hint}` }
      if (found !== undefined) return { groups: found, fault: '' }
      if (performance.now() > until)
        return { groups: [], fault: `its source (${settings.kind}) has not answered for ${timeoutMs} ms` }
      await new Promise(resolve => setTimeout(resolve, lookMs))
    }
  } finally {
    source.stop()
  }
}

async function tryTargets(job: ScrapeJob, all: readonly Target[], timeoutMs: number): Promise<Found[]> {
  const until = performance.now() + timeoutMs
  const faults: string[] = []
  const waiting = all.slice(0, mostTried)
  let tried = 0
  const work = async (): Promise<void> => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      const leftMs = Math.ceil(until - performance.now())
      if (leftMs <= 0) return
      const fault = await faultOf(target, Math.min(target.timeoutMs, leftMs))
      tried++
      if (fault !== '') faults.push(fault)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  const findings: Found[] = []
  const up = tried - faults.length
  const untried = all.length - tried
  if (up > 0 || tried === 0)
    findings.push({
      ok: `${job.name}: ${up} of ${tried} targets up${untried === 0 ? '' : `, ${untried} not checked`}`,
    })
  for (const fault of faults.slice(0, mostTold))
    findings.push({ fault: 'down', detail: `${job.name}: ${fault}` })
  if (faults.length > mostTold)
    findings.push({ fault: 'down', detail: `${job.name}: ${faults.length - mostTold} more targets are down` })
  return findings
}

/** '' if it is up. */
async function faultOf(target: Target, timeoutMs: number): Promise<string> {
  const client = openTarget(target)
  try {
    const { body, contentType, release } = await client.ask({ timeoutMs })
    try {
      return pageFault(target, body, contentType)
    } finally {
      release()
    }
  } catch (error) {
    return errorText(error)
  } finally {
    client.close()
  }
}

function pageFault({ job }: Target, body: Buffer, contentType: string): string {
  const verdict = formatOf(contentType, 'text')
  if ('fault' in verdict) return verdict.fault
  const { lenient } = job
  const page = readPage(body, verdict.format, { lenient, maxSamples: 0, maxLineBytes })
  if (!('reason' in page)) return ''
  return `line ${page.line} of its page: ${page.reason}: ${page.excerpt}`
}

/** Failures become findings instead. */
const silent = createLogger({ level: 'error', format: 'text', write: () => undefined })
