// Profiles in the window: a list, and as flame graphs.

import { printable } from '../../signals/profiles/frame-text.ts'
import type { FlameDocument, ProfilesLine } from '../../view/api/ui/documents.ts'
import type { FlameQuery, Live, ProfileKind } from '../../view/api/ui/source.ts'
import type { ProfiledInterval } from '../../view/window/profile-window.ts'
import type { DocumentContext } from './document-context.ts'

const lookMs = 5000
/** Maximum number of intervals in a line; neighbours are merged. */
const mostIntervals = 360
const mostServices = 200

/** A line for each new profile. `service` '': all. */
export function profiles(parts: DocumentContext, kind: ProfileKind, service: string): Live<ProfilesLine> {
  let sentVersion = -1
  let sentOff: string | undefined
  return {
    everyMs: lookMs,
    next: () => {
      const { version } = parts.window.profiles
      const kinds = parts.window.profiles.kinds()
      const off = kinds.includes(kind) ? '' : reasonFor(parts, kind)
      if (version === sentVersion && off === sentOff) return []
      sentVersion = version
      sentOff = off
      return [lineOf(parts, kind, service, kinds, off)]
    },
  }
}

/** Profiles in the window as one tree, with the profile to compare with. */
export function flame(parts: DocumentContext, query: FlameQuery): FlameDocument {
  const { kind, service, limit } = query
  const atMs = Date.now()
  const isCompared = query.base_since_ms > 0 || query.base_until_ms > 0
  const columns = parts.window.profiles.flame({
    kind,
    service,
    ...between(atMs, query.since_ms, query.until_ms),
    ...(isCompared && { base: between(atMs, query.base_since_ms, query.base_until_ms) }),
    limit,
  })
  const { cut, missing, ...tree } = columns
  return {
    ...tree,
    unit: unitOf(kind),
    omitted: cut,
    // Function names are foreign.
    names: tree.names.map(name => printable(name)),
    files: tree.files.map(file => printable(file)),
    missing_names: missing.map(({ reason, value }) => ({ reason: printable(reason), value })),
  }
}

function lineOf(
  { window }: DocumentContext,
  kind: ProfileKind,
  service: string,
  kinds: ProfilesLine['kinds'],
  off: string,
): ProfilesLine {
  const { intervals, services } = window.profiles.overview(kind, service)
  let toMs = 0
  for (const interval of intervals) toMs = Math.max(toMs, interval.toMs)
  return {
    kinds,
    unit: unitOf(kind),
    from_ms: intervals[0]?.fromMs ?? 0,
    to_ms: toMs,
    intervals: joined(intervals).map(each => ({ from_ms: each.fromMs, to_ms: each.toMs, value: each.value })),
    services: services.slice(0, mostServices),
    no_data_reason: off === '' && intervals.length === 0 ? `${service} has no samples in this window.` : off,
  }
}

/** Merges neighbours, as many as needed. */
function joined(intervals: readonly ProfiledInterval[]): ProfiledInterval[] {
  const each = Math.ceil(intervals.length / mostIntervals)
  const all: ProfiledInterval[] = []
  for (const [i, interval] of intervals.entries()) {
    const last = all.at(-1)
    if (last === undefined || i % each === 0) all.push({ ...interval })
    else {
      last.toMs = Math.max(last.toMs, interval.toMs)
      last.value += interval.value
    }
  }
  return all
}

/** Both are milliseconds before now; 0 for no limit. */
function between(atMs: number, sinceMs: number, untilMs: number): { fromMs: number; toMs: number } {
  return {
    fromMs: sinceMs > 0 ? atMs - sinceMs : Number.NEGATIVE_INFINITY,
    toMs: untilMs > 0 ? atMs - untilMs : Number.POSITIVE_INFINITY,
  }
}

function unitOf(kind: ProfileKind): string {
  return kind === 'memory' ? 'bytes' : 'nanoseconds'
}

/** Why a kind has no profiles. */
function reasonFor(parts: DocumentContext, kind: ProfileKind): string {
  const { mode, agent } = parts.loaded().config
  const { profiling, ebpf } = agent
  if (mode !== 'agent')
    return 'In mode collector, svc takes no profiles: set mode: agent on the host to profile.'
  if (!profiling.enabled) return 'Profiling is off: set agent.profiling.enabled: true.'
  if (!ebpf.enabled) return 'Profiling needs eBPF, which is off: set agent.ebpf.enabled: true.'
  const [fault] = parts.profiling.faults
  if (parts.profiling.profiler === undefined)
    return `Profiling is not running: ${fault?.reason ?? 'it has not started yet'}; ${fault?.hint ?? 'try again in a moment'}.`
  if (!profiling[kind]) return `${kindTitles[kind]} is not sampled: set agent.profiling.${kind}: true.`
  if (fault !== undefined) return `Profiling is degraded: ${fault.reason}; ${fault.hint}.`
  const seconds = Math.ceil(profiling.interval / 1000)
  return `No profiles in this window. The first one appears a few seconds after the start, then one every ${seconds} s, of all processes that ran.`
}

const kindTitles = {
  cpu: 'CPU time',
  off_cpu: 'Off-CPU time',
  memory: 'Memory',
} as const
