import { KnownFaults } from '../../../../foundation/lib/known-faults.ts'
import type { TargetGroup } from '../scrape-job.ts'
import type { SourceOptions, TargetSourceState } from '../source.ts'

/** Maximum targets of a source. Prometheus itself supports some ten thousand. */
export const maxTargets = 100_000
/** Minimum and maximum delay, in milliseconds, within which changes are combined. */
const leastPauseMs = 50
const longestPauseMs = 5_000
/** Each report takes time per group, so many groups are reported less often. */
const groupsPerMs = 20

/** Fault of a source, with a hint. */
export interface SourceFault {
  readonly reason: string
  readonly hint: string
}

/** The groups of one source, with its faults. Reports them after changes. */
export class TargetGroupPublisher {
  readonly #kind: string
  readonly #options: SourceOptions
  readonly #owners = new Map<string, readonly TargetGroup[]>()
  readonly #faults = new KnownFaults<SourceFault>()
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #reportedGroups = -1
  #reportedTargets = 0
  #updatedMs = 0

  constructor(kind: string, options: SourceOptions) {
    this.#kind = kind
    this.#options = options
  }

  get state(): TargetSourceState {
    const [first] = this.#faults
    const fault = first?.[1]
    return {
      connected: this.#updatedMs > 0 && fault === undefined,
      reason: fault?.reason ?? '',
      hint: fault?.hint ?? '',
      groups: Math.max(0, this.#reportedGroups),
      targets: this.#reportedTargets,
      updatedMs: this.#updatedMs,
    }
  }

  /** Number of targets of an owner, such as a file or a pod. */
  targetsOf(owner: string): number {
    return this.#owners.get(owner)?.reduce((sum, { targets }) => sum + targets.length, 0) ?? 0
  }

  /** Sets the groups of an owner. Unchanged groups stay the same objects. */
  put(owner: string, groups: readonly TargetGroup[]): void {
    const before = this.#owners.get(owner)
    const kept = before === undefined ? groups : keepSame(before, groups)
    if (kept === before) return
    if (before === undefined && groups.length === 0) return
    if (kept.length === 0) this.#owners.delete(owner)
    else this.#owners.set(owner, kept)
    this.#change()
  }

  remove(owner: string): void {
    if (this.#owners.delete(owner)) this.#change()
  }

  /** Removes all other owners. */
  keepOnly(owners: ReadonlySet<string>): void {
    for (const owner of [...this.#owners.keys()]) if (!owners.has(owner)) this.remove(owner)
  }

  /** Marks the groups as current. */
  known(): void {
    this.#updatedMs = (this.#options.now ?? Date.now)()
    if (this.#reportedGroups < 0) this.#change()
  }

  /** Sets the fault of a subject; undefined for none. */
  report(subject: string, fault: SourceFault | undefined): void {
    if (!this.#faults.set(subject, fault) || this.#closed) return
    const { reason, hint } = fault
    this.#options.log.warn('target discovery failed; keeping the last known targets', {
      source: this.#kind,
      reason,
      hint,
    })
  }

  /** Stops all reports. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #change(): void {
    if (this.#timer !== undefined || this.#closed) return
    const pauseMs = Math.min(longestPauseMs, Math.max(leastPauseMs, this.#owners.size / groupsPerMs))
    this.#timer = setTimeout(() => this.#emit(), pauseMs).unref()
  }

  #emit(): void {
    this.#timer = undefined
    const reported: TargetGroup[] = []
    let targets = 0
    let leftOut = 0
    for (const groups of this.#owners.values())
      for (const group of groups) {
        const room = maxTargets - targets
        const isWhole = group.targets.length <= room
        if (isWhole) reported.push(group)
        else if (room > 0) reported.push({ ...group, targets: group.targets.slice(0, room) })
        targets += Math.min(room, group.targets.length)
        if (!isWhole) leftOut += group.targets.length - room
      }
    this.#reportedGroups = reported.length
    this.#reportedTargets = targets
    this.report('limit', leftOut === 0 ? undefined : tooMany(leftOut))
    this.#options.onGroups(reported)
  }
}

function tooMany(leftOut: number): SourceFault {
  return {
    reason: `more than ${maxTargets} targets; ${leftOut} are left out`,
    hint: 'split them into several entries, or use narrower namespaces and selectors',
  }
}

/** Returns `before` itself if all groups are equal. */
function keepSame(before: readonly TargetGroup[], after: readonly TargetGroup[]): readonly TargetGroup[] {
  const kept = after.map((group, at) => {
    const known = before[at]
    return known !== undefined && isSameGroup(known, group) ? known : group
  })
  return kept.length === before.length && kept.every((group, at) => group === before[at]) ? before : kept
}

function isSameGroup(one: TargetGroup, other: TargetGroup): boolean {
  return (
    one.source === other.source &&
    one.targets.length === other.targets.length &&
    isSameMap(one.labels, other.labels) &&
    one.targets.every((target, at) => isSameMap(target, other.targets[at]!))
  )
}

function isSameMap(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  if (one === other) return true
  if (one.size !== other.size) return false
  for (const [name, value] of one) if (other.get(name) !== value) return false
  return true
}
