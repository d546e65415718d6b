import type { TargetGroup } from '../scrape-job.ts'
import type { SourceOptions, TargetSourceState } from '../source.ts'

/** Of one source. Prometheus itself does well with some ten thousand. */
export const maxTargets = 100_000
/** Changes within this time are told as one. */
const leastPauseMs = 50
const longestPauseMs = 5_000
/** Whoever is told looks at each of the groups, so that many of them are told less often. */
const groupsPerMs = 20
/** A fault is not warned of again before it was away for so long. */
const quietMs = 10 * 60_000
const rememberedFaults = 64

/** What is in the way of a source, in words, and what to do about it. */
export interface SourceFault {
  readonly reason: string
  readonly hint: string
}

/** The groups of one source, and whether they can be believed. Tells of them when they have changed. */
export class TargetGroupPublisher {
  readonly #kind: string
  readonly #options: SourceOptions
  readonly #owners = new Map<string, readonly TargetGroup[]>()
  readonly #faults = new Map<string, SourceFault>()
  /** When a fault was met last. */
  readonly #lastAtMs = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #toldGroups = -1
  #toldTargets = 0
  #updatedMs = 0

  constructor(kind: string, options: SourceOptions) {
    this.#kind = kind
    this.#options = options
  }

  get state(): TargetSourceState {
    const [fault] = this.#faults.values()
    return {
      connected: this.#updatedMs > 0 && fault === undefined,
      reason: fault?.reason ?? '',
      hint: fault?.hint ?? '',
      groups: Math.max(0, this.#toldGroups),
      targets: this.#toldTargets,
      updatedMs: this.#updatedMs,
    }
  }

  /** Targets that an owner, as a file or a pod, had last. */
  targetsOf(owner: string): number {
    return this.#owners.get(owner)?.reduce((sum, { targets }) => sum + targets.length, 0) ?? 0
  }

  /** The groups that an owner has by now. Those that say the same as before stay the same. */
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

  /** Removes every owner that is not among these. */
  keepOnly(owners: ReadonlySet<string>): void {
    for (const owner of [...this.#owners.keys()]) if (!owners.has(owner)) this.remove(owner)
  }

  /** What is there is known as of now. */
  known(): void {
    this.#updatedMs = (this.#options.now ?? Date.now)()
    if (this.#toldGroups < 0) this.#change()
  }

  /** What is wrong with a subject; undefined: nothing any more. */
  report(subject: string, fault: SourceFault | undefined): void {
    if (fault === undefined) {
      this.#faults.delete(subject)
      return
    }
    this.#faults.set(subject, fault)
    const { reason, hint } = fault
    const now = performance.now()
    const isKnown = now - (this.#lastAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) < quietMs
    if (this.#lastAtMs.size >= rememberedFaults) this.#lastAtMs.clear()
    this.#lastAtMs.set(reason, now)
    if (isKnown || this.#closed) return
    this.#options.log.warn('target discovery failed; keeping the last known targets', {
      source: this.#kind,
      reason,
      hint,
    })
  }

  /** Nothing is told from now on. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #change(): void {
    if (this.#timer !== undefined || this.#closed) return
    const pauseMs = Math.min(longestPauseMs, Math.max(leastPauseMs, this.#owners.size / groupsPerMs))
    this.#timer = setTimeout(() => this.#tell(), pauseMs).unref()
  }

  #tell(): void {
    this.#timer = undefined
    const told: TargetGroup[] = []
    let targets = 0
    let leftOut = 0
    for (const groups of this.#owners.values())
      for (const group of groups) {
        const room = maxTargets - targets
        const isWhole = group.targets.length <= room
        if (isWhole) told.push(group)
        else if (room > 0) told.push({ ...group, targets: group.targets.slice(0, room) })
        targets += Math.min(room, group.targets.length)
        if (!isWhole) leftOut += group.targets.length - room
      }
    this.#toldGroups = told.length
    this.#toldTargets = targets
    this.report('limit', leftOut === 0 ? undefined : tooMany(leftOut))
    this.#options.onGroups(told)
  }
}

function tooMany(leftOut: number): SourceFault {
  return {
    reason: `more than ${maxTargets} targets; ${leftOut} are left out`,
    hint: 'split them into several entries, or use narrower namespaces and selectors',
  }
}

/** `before` itself where all say the same. */
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
