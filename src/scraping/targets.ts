import { createHash } from 'node:crypto'
import { durationOf, durationText } from './duration-text.ts'
import {
  addressLabel,
  instanceLabel,
  intervalLabel,
  isLabelName,
  isText,
  jobLabel,
  metricsPathLabel,
  paramPrefix,
  reservedPrefix,
  schemeLabel,
  timeoutLabel,
} from './label-names.ts'
import { relabel } from './relabel.ts'
import type { ScrapeJob, TargetGroup } from './scrape-job.ts'
import { type Shard, shardOf } from './shard.ts'
import type { DroppedTarget, Target } from './target.ts'
import { addressFault, targetUrl } from './target-url.ts'

/** What became of all that the sources of a job told. */
export interface ToldTargets {
  readonly targets: readonly Target[]
  /** The first 1,000; `droppedTotal` counts all. */
  readonly dropped: readonly DroppedTarget[]
  readonly droppedTotal: number
}

const mostDropped = 1000

/** Shortest and longest that a label may ask for; the longest is that of a timer (Node.js, `setTimeout`). */
const leastIntervalMs = 100
const mostIntervalMs = 24 * 86_400_000

/**
 * The targets of a job (Prometheus 3, scrape/target.go): labels of group and target, defaults of the job, relabelling,
 * and then an address without a default port. Each is there once. Of a sharded job those that belong to this agent.
 * Beyond the job's limit there are none: what a limit keeps out would depend on the order in which targets are told.
 */
export function targetsOf(job: ScrapeJob, groups: Iterable<TargetGroup>, shard?: Shard): ToldTargets {
  const targets = new Map<string, Target>()
  const dropped: DroppedTarget[] = []
  let droppedTotal = 0
  const drop = (discovered: ReadonlyMap<string, string>, reason: string) => {
    droppedTotal++
    if (dropped.length < mostDropped) dropped.push({ job: job.name, discovered, reason })
  }
  const defaults = defaultsOf(job)
  for (const group of groups)
    for (const own of group.targets) {
      const discovered = discoveredLabels(defaults, group.labels, own)
      const target = targetOf(job, discovered)
      if (typeof target === 'string') drop(discovered, target)
      else if (shard !== undefined && !shardOf(shard, target.id)) drop(discovered, 'shard')
      else if (!targets.has(target.id)) targets.set(target.id, target)
    }
  const limit = job.limits.targets
  if (limit === 0 || targets.size <= limit) return { targets: [...targets.values()], dropped, droppedTotal }
  const reason = `target_limit exceeded: ${targets.size} targets, and ${limit} are allowed; raise target_limit or drop some by relabelling`
  for (const { discovered } of targets.values()) drop(discovered, reason)
  return { targets: [], dropped, droppedTotal }
}

/** Labels that a target gets unless it has them. */
function defaultsOf(job: ScrapeJob): ReadonlyMap<string, string> {
  const defaults = new Map([
    [jobLabel, job.name],
    [intervalLabel, durationText(job.intervalMs)],
    [timeoutLabel, durationText(job.timeoutMs)],
    [metricsPathLabel, job.metricsPath],
    [schemeLabel, job.scheme],
  ])
  for (const [name, [first = '']] of Object.entries(job.params)) defaults.set(paramPrefix + name, first)
  return defaults
}

/** A label without a value is none, but one of the target hides that of its group. */
function discoveredLabels(
  defaults: ReadonlyMap<string, string>,
  group: ReadonlyMap<string, string>,
  own: ReadonlyMap<string, string>,
): Map<string, string> {
  const labels = new Map<string, string>()
  for (const [name, value] of own) if (value !== '') labels.set(name, value)
  for (const [name, value] of group) if (value !== '' && !own.has(name)) labels.set(name, value)
  for (const [name, value] of defaults) if (value !== '' && !labels.has(name)) labels.set(name, value)
  return labels
}

/** A text says why it is none. */
function targetOf(job: ScrapeJob, discovered: ReadonlyMap<string, string>): Target | string {
  const all = new Map(discovered)
  if (!relabel(job.relabel, all)) return 'relabelling'
  const address = all.get(addressLabel) ?? ''
  const times = timesOf(job, all)
  const fault = addressFault(address, all.get(schemeLabel) ?? '') || times.fault || labelFault(all)
  if (fault !== '') return fault
  const labels = new Map<string, string>()
  for (const [name, value] of all) if (!name.startsWith(reservedPrefix)) labels.set(name, value)
  if (!labels.has(instanceLabel)) labels.set(instanceLabel, address)
  const url = targetUrl(job, all)
  const { intervalMs, timeoutMs } = times
  return { job, id: targetId(job.name, url, labels), url, labels, discovered, intervalMs, timeoutMs }
}

interface Times {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** '' for none. */
  readonly fault: string
}

/** Relabelling may have changed them. What the job itself says was checked when it was read. */
function timesOf(job: ScrapeJob, labels: ReadonlyMap<string, string>): Times {
  const interval = timeOf(intervalLabel, labels, job.intervalMs, leastIntervalMs)
  const timeout = timeOf(timeoutLabel, labels, job.timeoutMs, 1)
  if (typeof interval === 'string' || typeof timeout === 'string') {
    const fault = typeof interval === 'string' ? interval : String(timeout)
    return { intervalMs: 0, timeoutMs: 0, fault }
  }
  const fault =
    timeout <= interval
      ? ''
      : `${timeoutLabel} ${durationText(timeout)} is longer than ${intervalLabel} ${durationText(interval)}: set a shorter timeout`
  return { intervalMs: interval, timeoutMs: timeout, fault }
}

/** Milliseconds, or what is wrong. */
function timeOf(
  label: string,
  labels: ReadonlyMap<string, string>,
  ofJob: number,
  least: number,
): number | string {
  const text = labels.get(label) ?? ''
  if (text === durationText(ofJob)) return ofJob
  const ms = durationOf(text)
  const shown = `${label} ${JSON.stringify(text.slice(0, 64))}`
  if (ms === undefined) return `${shown} is no duration: set one such as 30s or 1m30s`
  if (ms >= least && ms <= mostIntervalMs) return ms
  return `${shown} is not between ${durationText(least)} and ${durationText(mostIntervalMs)}: set one that is`
}

function labelFault(labels: ReadonlyMap<string, string>): string {
  for (const [name, value] of labels) {
    if (!isLabelName(name))
      return `${JSON.stringify(name.slice(0, 64))} is no name of a label: give it one of valid Unicode, or drop it by relabelling`
    if (!isText(value)) return `the value of ${name.slice(0, 64)} is no valid Unicode: drop it by relabelling`
  }
  return ''
}

function targetId(job: string, url: string, labels: ReadonlyMap<string, string>): string {
  const sorted = [...labels].sort((a, b) => (a[0] < b[0] ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([job, url, sorted]))
    .digest('base64url')
    .slice(0, 22)
}
