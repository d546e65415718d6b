// Findings about this host, its services and svc, in sentences.

import { bytesText } from '../../foundation/lib/number-text.ts'
import { reasonNamed } from '../../foundation/model/drop-reasons.ts'
import { signals } from '../../foundation/model/signal.ts'
import { printable } from '../../signals/profiles/frame-text.ts'
import type { OverviewLine } from '../../view/api/ui/documents.ts'
import type { Vitals } from '../../view/window/vitals.ts'
import { refused } from '../agent/reload-view.ts'
import type { DocumentContext } from './document-context.ts'
import { type Loss, RecentLosses } from './losses.ts'
import type { ServicePast } from './services.ts'
import { degradations } from './view.ts'

export type OverviewTick = Extract<OverviewLine, { kind: 'tick' }>
export type Finding = OverviewTick['findings'][number]

const mostFindings = 12
/** Limit per kind, so that one kind does not hide all others. */
const mostOfAKind = 4
/** Services with fewer requests in the last minute have no meaningful percentages. */
const leastRequests = 12
const levels = { bad: 0, warn: 1, note: 2 } as const
/** Duration of a condition before it is reported, in seconds. */
const pressureSeconds = 10

/** Reports current findings. */
export class Findings {
  readonly #parts: DocumentContext
  readonly #losses: RecentLosses
  readonly #fileSystems: FullFileSystems

  constructor(parts: DocumentContext) {
    this.#parts = parts
    this.#losses = new RecentLosses(parts.pipelines.pipeline)
    this.#fileSystems = new FullFileSystems(parts)
  }

  /** At most twelve, worst first. `nowMs` is from a monotonic clock. */
  of(services: readonly ServicePast[], nowMs: number): Finding[] {
    const parts = this.#parts
    const kinds = [
      ofHost(parts.window.vitals),
      this.#fileSystems.now(nowMs).map(ofFileSystem),
      ofServices(services),
      ofSubsystems(parts),
      this.#losses.now(nowMs).map(ofLoss),
      ofQueues(parts),
      ofExport(parts),
    ]
    return kinds
      .flatMap(kind => byLevel(kind).slice(0, mostOfAKind))
      .sort((a, b) => levels[a.level] - levels[b.level])
      .slice(0, mostFindings)
  }
}

function byLevel(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => levels[a.level] - levels[b.level])
}

/** Findings about the host. Unknown values produce none. */
export function ofHost(vitals: Vitals): Finding[] {
  const findings: Finding[] = []
  const link = '/ui/overview'
  const { memoryBytes, memoryAvailableBytes } = vitals.facts
  const available = (100 * memoryAvailableBytes) / memoryBytes
  if (available < 5)
    findings.push({
      level: 'bad',
      text: `Memory is nearly full: ${percent(available)} of ${bytesText(memoryBytes)} available.`,
      link,
      command: '',
    })
  const mean = (id: Parameters<Vitals['mean']>[0]) => vitals.mean(id, pressureSeconds)
  const waits = [
    ['memory', mean('pressureMemory'), 10, 30],
    ['I/O', mean('pressureIo'), 40, 80],
    // High load alone is not a fault.
    ['CPU', mean('pressureCpu'), 70, Number.POSITIVE_INFINITY],
  ] as const
  for (const [what, value, warn, bad] of waits)
    if (value >= warn)
      findings.push({
        level: value >= bad ? 'bad' : 'warn',
        text: `Tasks waited for ${what} during ${percent(value)} of the last ${pressureSeconds} seconds.`,
        link,
        command: '',
      })
  const stolen = mean('cpuSteal')
  if (stolen >= 10)
    findings.push({
      level: 'warn',
      text: `The hypervisor gives ${percent(stolen)} of this host's CPU time to other guests.`,
      link,
      command: '',
    })
  const refused = mean('tcpRefused')
  if (refused > 0)
    findings.push({
      level: 'warn',
      text: `New TCP connections are refused, ${rateText(refused)}/s: a server accepts them too slowly and its queue is full.`,
      link,
      command: 'ss -ltn',
    })
  return findings
}

/** Services that fail or are slower than usual. The input is sorted by badness. */
export function ofServices(services: readonly ServicePast[]): Finding[] {
  const findings: Finding[] = []
  for (const { service, requests, usualP95Ms } of services) {
    const { name, errors_percent, p95_ms, serves } = service
    if (requests < leastRequests) continue
    const link = `/ui/service?name=${encodeURIComponent(name)}`
    if (errors_percent >= 5)
      findings.push({
        level: errors_percent >= 25 ? 'bad' : 'warn',
        text: `${printable(name)}: ${percent(errors_percent)} of ${serves ? 'requests' : 'outgoing requests'} fail.`,
        link: `/ui/traces?service=${encodeURIComponent(name)}&errors=1`,
        command: '',
      })
    if (p95_ms !== null && usualP95Ms !== null && usualP95Ms > 0 && p95_ms >= 4 * usualP95Ms)
      findings.push({
        level: 'warn',
        text: `${printable(name)} is slow: p95 is ${millisText(p95_ms)}, ${Math.round(p95_ms / usualP95Ms)}× its median in this window.`,
        link,
        command: '',
      })
  }
  return findings
}

/** Degraded subsystems: those that block export one by one, all others in one sentence. */
function ofSubsystems(parts: DocumentContext): Finding[] {
  const findings: Finding[] = []
  const stuck = parts.stuck()
  if (stuck !== undefined)
    findings.push({ level: 'bad', text: `svc is stuck: ${stuck}.`, link: '/ui/agent', command: '' })
  const limited: { readonly subsystem: string; readonly reason: string; readonly hint: string }[] = []
  for (const each of degradations(parts.faults())) {
    if (each.subsystem === refused) {
      findings.push({
        level: 'warn',
        text: sentence(`${each.subsystem}: ${each.reason}; ${each.hint}`),
        link: '/ui/agent',
        command: 'svc validate',
      })
      continue
    }
    if (!/^(export|queue)\b/.test(each.subsystem)) {
      limited.push(each)
      continue
    }
    findings.push({
      level: each.subsystem === 'queue' ? 'warn' : 'bad',
      text: sentence(`${each.subsystem}: ${each.reason}; ${each.hint}`),
      link: '/ui/pipeline',
      command: each.subsystem === 'queue' ? 'svc status' : 'svc doctor export',
    })
  }
  const [first] = limited
  if (first === undefined) return findings
  const names = [...new Set(limited.map(({ subsystem }) => subsystem))]
  findings.push({
    level: 'warn',
    text:
      limited.length === 1
        ? sentence(`${first.subsystem}: ${first.reason}; ${first.hint}`)
        : `${limited.length} features are degraded: ${listText(names)}.`,
    link: '/ui/agent',
    command: 'svc doctor',
  })
  return findings
}

export function ofLoss({ signal, reason, perSecond }: Loss): Finding {
  const why = reasonNamed(reason)?.means
  return {
    level: 'bad',
    text: `${sentence(`${signal} lost, ${rateText(perSecond)}/s: ${reason}${why === undefined ? '' : `, ${why}`}`)}`,
    link: '/ui/pipeline',
    command: 'svc status',
  }
}

function ofQueues({ pipelines: { pipeline } }: DocumentContext): Finding[] {
  return signals.flatMap(signal => {
    const filled = 100 * pipeline.fill(signal)
    if (filled < 50) return []
    const { oldestMs, durable } = pipeline.state(signal)
    return [
      {
        level: filled >= 90 ? ('bad' as const) : ('warn' as const),
        text: `The ${signal} queue is ${percent(filled)} full; its oldest batch has waited ${secondsText(oldestMs)}.`,
        link: '/ui/pipeline',
        command: durable ? 'svc queue' : 'svc status',
      },
    ]
  })
}

function ofExport({ pipelines, window }: DocumentContext): Finding[] {
  const isSent = signals.some(signal => pipelines.pipeline.state(signal).destination !== undefined)
  if (isSent || pipelines.faults.length > 0) return []
  return [
    {
      level: 'note',
      text: `No exporter configured: data stays in memory, for ${secondsText(window.windowMs)} at most. Set otlp.endpoint to export it.`,
      link: '/ui/pipeline',
      command: '',
    },
  ]
}

interface FileSystem {
  readonly mountPoint: string
  readonly sizeBytes: number
  readonly availableBytes: number
}

export function ofFileSystem({ mountPoint, sizeBytes, availableBytes }: FileSystem): Finding {
  const full = 100 - (100 * availableBytes) / sizeBytes
  return {
    level: full >= 99 ? 'bad' : 'warn',
    text: `${printable(mountPoint)} is ${percent(full)} full: ${bytesText(availableBytes)} of ${bytesText(sizeBytes)} left.`,
    link: '/ui/metrics',
    command: `du -xh --max-depth=2 ${shellWord(mountPoint)}`,
  }
}

const fileSystemsMs = 10_000

/** File systems with less than 5 % left, from the last reading of the collector; never queried here, as one may hang. */
class FullFileSystems {
  readonly #parts: DocumentContext
  #found: readonly FileSystem[] = []
  #atMs = Number.NEGATIVE_INFINITY

  constructor(parts: DocumentContext) {
    this.#parts = parts
  }

  now(nowMs: number): readonly FileSystem[] {
    if (nowMs - this.#atMs < fileSystemsMs) return this.#found
    this.#atMs = nowMs
    this.#found = this.#read()
    return this.#found
  }

  #read(): readonly FileSystem[] {
    const metrics = this.#parts.hostMetrics()?.readings
    const run = metrics?.runs.find(({ name }) => name === 'filesystem')
    if (metrics === undefined || run === undefined) return []
    const sizes = new Map<string, number>()
    const available = new Map<string, number>()
    const readOnly = new Set<string>()
    for (const [, all] of metrics.page.read(new Set([run])))
      for (const { family, labels, value } of all) {
        const device = labels[0]
        const mountPoint = labels[family.labels.indexOf('mountpoint')]
        // Without these labels the file system cannot be identified.
        if (labels.length < family.labels.length || device === undefined || mountPoint === undefined) continue
        if (family.name === 'filesystem_size_bytes') sizes.set(mountPoint, value)
        else if (family.name === 'filesystem_avail_bytes') available.set(mountPoint, value)
        else if (family.name === 'filesystem_readonly' && value === 1) readOnly.add(mountPoint)
      }
    const found: FileSystem[] = []
    for (const [mountPoint, sizeBytes] of sizes) {
      const availableBytes = available.get(mountPoint) ?? sizeBytes
      // Read-only file systems are full by design.
      if (readOnly.has(mountPoint) || sizeBytes <= 0 || availableBytes >= sizeBytes / 20) continue
      found.push({ mountPoint: printable(this.#parts.shown(mountPoint)), sizeBytes, availableBytes })
    }
    return found.sort((a, b) => a.availableBytes / a.sizeBytes - b.availableBytes / b.sizeBytes)
  }
}

/** Mount names are foreign: pasted into a shell, a name must be a name and nothing else. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

function sentence(text: string): string {
  const whole = `${text.charAt(0).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(whole) ? whole : `${whole}.`
}

function listText(names: readonly string[]): string {
  const shown = names.slice(0, 4)
  const rest = names.length - shown.length
  return rest > 0 ? `${shown.join(', ')} and ${rest} more` : shown.join(', ')
}

function percent(value: number): string {
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} %`
}

function rateText(perSecond: number): string {
  return perSecond >= 10 ? String(Math.round(perSecond)) : perSecond.toPrecision(2)
}

function millisText(ms: number): string {
  return ms >= 1000 ? `${(ms / 1000).toPrecision(2)} s` : `${Number(ms.toPrecision(2))} ms`
}

function secondsText(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
