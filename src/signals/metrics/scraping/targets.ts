import { createHash } from 'node:crypto'
import { Turn } from '../../../foundation/lib/turn.ts'
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

/** Targets of a job, with the dropped ones. */
export interface DiscoveredTargets {
  readonly targets: readonly Target[]
  /** The first 1,000; `droppedTotal` counts all. */
  readonly dropped: readonly DroppedTarget[]
  readonly droppedTotal: number
}

const mostDropped = 1000

/** Minimum and maximum interval from a label; the maximum is that of a timer (Node.js, `setTimeout`). */
const leastIntervalMs = 100
const mostIntervalMs = 24 * 86_400_000

/** Unchanged groups and jobs are the same objects, so results are cached by them. */
const known = new WeakMap<TargetGroup, Known>()

interface Known {
  readonly job: ScrapeJob
  /** By target of the group, as far as processed: the target, or the reason why it is not one. */
  readonly results: (Target | string)[]
}

/**
 * Targets of a job (Prometheus 3, scrape/target.go): labels of group and target, defaults of the job, relabelling, and
 * then an address without a default port. Duplicates are removed. With `shard`, only the targets of this agent. Above
 * the job's limit there are no targets at all: the choice would depend on the order of discovery.
 *
 * Groups must not be changed: a known group costs next to nothing. A new target costs 10 to 30 µs, so call
 * `readTargets` first for thousands of them.
 */
export function targetsOf(job: ScrapeJob, groups: Iterable<TargetGroup>, shard?: Shard): DiscoveredTargets {
  const targets = new Map<string, Target>()
  const dropped: DroppedTarget[] = []
  let droppedTotal = 0
  const defaults = defaultsOf(job)
  const drop = (reason: string, discovered: () => ReadonlyMap<string, string>) => {
    droppedTotal++
    if (dropped.length < mostDropped) dropped.push({ job: job.name, discovered: discovered(), reason })
  }
  for (const group of groups) {
    for (const [i, result] of resultsOf(job, defaults, group).entries()) {
      if (typeof result === 'string')
        drop(result, () => discoveredLabels(defaults, group.labels, group.targets[i]!))
      else if (shard !== undefined && !shardOf(shard, result.id)) drop('shard', () => result.discovered)
      else if (!targets.has(result.id)) targets.set(result.id, result)
    }
  }
  const limit = job.limits.targets
  if (limit === 0 || targets.size <= limit) return { targets: [...targets.values()], dropped, droppedTotal }
  const reason = `target_limit exceeded: ${targets.size} targets, the limit is ${limit}; raise target_limit or drop some by relabelling`
  for (const { discovered } of targets.values()) drop(reason, () => discovered)
  return { targets: [], dropped, droppedTotal }
}

/** Does the work of `targetsOf` for new groups, in slices. */
export async function readTargets(job: ScrapeJob, groups: Iterable<TargetGroup>): Promise<void> {
  const defaults = defaultsOf(job)
  const turn = new Turn(2)
  for (const group of groups) {
    const { results } = knownOf(job, group)
    let hasMore = true
    while (hasMore) {
      hasMore = addResults(job, defaults, group, results, atOnce)
      if (turn.isOver) await turn.next()
    }
  }
}

/** Targets between two checks of the clock. */
const atOnce = 16

function resultsOf(job: ScrapeJob, defaults: ReadonlyMap<string, string>, group: TargetGroup) {
  const { results } = knownOf(job, group)
  addResults(job, defaults, group, results, group.targets.length)
  return results
}

function knownOf(job: ScrapeJob, group: TargetGroup): Known {
  const before = known.get(group)
  if (before?.job === job) return before
  const fresh: Known = { job, results: [] }
  known.set(group, fresh)
  return fresh
}

/** Adds at most `most` results. Returns whether there are more. */
function addResults(
  job: ScrapeJob,
  defaults: ReadonlyMap<string, string>,
  { targets, labels }: TargetGroup,
  results: (Target | string)[],
  most: number,
): boolean {
  const end = Math.min(targets.length, results.length + most)
  for (let i = results.length; i < end; i++)
    results.push(targetOf(job, defaults, discoveredLabels(defaults, labels, targets[i]!)))
  return end < targets.length
}

/** Labels added to targets that lack them. */
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

/** A label with an empty value is removed, but the target's hides that of its group. */
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

/** Returns the reason if it is not a target. */
function targetOf(
  job: ScrapeJob,
  defaults: ReadonlyMap<string, string>,
  discovered: ReadonlyMap<string, string>,
): Target | string {
  const all = new Map(discovered)
  if (!relabel(job.relabel, all)) return 'relabelling'
  const address = all.get(addressLabel) ?? ''
  const times = timesOf(job, defaults, all)
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

/** Relabelling may have changed the times. Those of the job itself were checked with the configuration. */
function timesOf(
  job: ScrapeJob,
  defaults: ReadonlyMap<string, string>,
  labels: ReadonlyMap<string, string>,
): Times {
  const timeOf = (label: string, ofJob: number, least: number) => {
    const text = labels.get(label)
    return text === defaults.get(label) ? ofJob : timeBetween(label, text ?? '', least)
  }
  const interval = timeOf(intervalLabel, job.intervalMs, leastIntervalMs)
  const timeout = timeOf(timeoutLabel, job.timeoutMs, 1)
  if (typeof interval === 'string' || typeof timeout === 'string') {
    const fault = typeof interval === 'string' ? interval : String(timeout)
    return { intervalMs: 0, timeoutMs: 0, fault }
  }
  const fault =
    timeout <= interval
      ? ''
      : `${timeoutLabel} ${durationText(timeout)} is longer than ${intervalLabel} ${durationText(interval)}; set a shorter timeout`
  return { intervalMs: interval, timeoutMs: timeout, fault }
}

/** Milliseconds, or a description of the fault. */
function timeBetween(label: string, text: string, leastMs: number): number | string {
  const ms = durationOf(text)
  const shown = `${label} ${JSON.stringify(text.slice(0, 64))}`
  if (ms === undefined) return `${shown} is not a duration; use one such as 30s or 1m30s`
  if (ms >= leastMs && ms <= mostIntervalMs) return ms
  return `${shown} is not between ${durationText(leastMs)} and ${durationText(mostIntervalMs)}`
}

function labelFault(labels: ReadonlyMap<string, string>): string {
  for (const [name, value] of labels) {
    if (name === '') return 'a label has no name; drop it by relabelling'
    if (!isLabelName(name))
      return `${JSON.stringify(name.slice(0, 64))} is not a label name: not valid Unicode; drop it by relabelling`
    if (!isText(value))
      return `the value of ${name.slice(0, 64)} is not valid Unicode; drop it by relabelling`
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
