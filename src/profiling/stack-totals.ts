import type { SampleKind, StackCount } from '../model/raw-stack.ts'
import type { Resource } from '../model/resource.ts'

/** How often one stack of a group was met in threads of one name. */
export interface StackTotal {
  readonly comm: string
  readonly userHash: number
  readonly kernelHash: number
  readonly request: number
  count: number
  value: number
}

export interface StackGroup {
  readonly group: Resource
  readonly kind: SampleKind
  readonly pids: Set<number>
  readonly stacks: Map<string, StackTotal>
}

const maxPids = 1_000
/** Stacks of all groups, with their threads and requests. Those beyond count to one that has no frames. */
const maxTotals = 50_000
/** No stack has this hash: it is none of 53 bits. */
const lostHash = -1

/** Counts of stacks, by group of processes and kind. */
export class StackTotals {
  private size = 0
  private all = new Map<Resource, Map<SampleKind, StackGroup>>()

  add(resource: Resource, count: StackCount): void {
    const group = this.group(resource, count.kind)
    if (group.pids.size < maxPids) group.pids.add(count.pid)
    let { comm, userHash, kernelHash, request } = count
    let key = `${userHash} ${kernelHash} ${request} ${comm}`
    let total = group.stacks.get(key)
    if (total === undefined && this.size >= maxTotals) {
      comm = ''
      userHash = lostHash
      kernelHash = request = 0
      key = 'lost'
      total = group.stacks.get(key)
    }
    if (total === undefined) {
      this.size++
      group.stacks.set(key, {
        comm,
        userHash,
        kernelHash,
        request,
        count: count.count,
        value: count.value,
      })
    } else {
      total.count += count.count
      total.value += count.value
    }
  }

  /** All that was counted, and begins anew. */
  take(): StackTotals {
    const taken = new StackTotals()
    taken.all = this.all
    taken.size = this.size
    this.all = new Map()
    this.size = 0
    return taken
  }

  groups(): StackGroup[] {
    return [...this.all.values()].flatMap(kinds => [...kinds.values()])
  }

  private group(group: Resource, kind: SampleKind): StackGroup {
    let kinds = this.all.get(group)
    if (kinds === undefined) {
      kinds = new Map()
      this.all.set(group, kinds)
    }
    let found = kinds.get(kind)
    if (found === undefined) {
      found = { group, kind, pids: new Set(), stacks: new Map() }
      kinds.set(kind, found)
    }
    return found
  }
}
