import type { SampleKind, StackCount } from '../../foundation/model/raw-stack.ts'
import type { Resource } from '../../foundation/model/resource.ts'

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
/** Of a stack that was counted, with its key; of a number of a process; of a group. */
const totalBytes = 320
const pidBytes = 40
const groupBytes = 600
/** No stack has this hash: it is none of 53 bits. */
const lostHash = -1

/** Counts of stacks, by group of processes and kind. */
export class StackTotals {
  #size = 0
  #held = 0
  /** Memory is short: stacks that come from now on count to those that have no frames. */
  #isShort = false
  #all = new Map<Resource, Map<SampleKind, StackGroup>>()

  /** Bytes, about. */
  get bytes(): number {
    return this.#held + this.#size * totalBytes
  }

  add(resource: Resource, count: StackCount): void {
    const group = this.#group(resource, count.kind)
    if (group.pids.size < maxPids && !group.pids.has(count.pid)) {
      group.pids.add(count.pid)
      this.#held += pidBytes
    }
    let { comm, userHash, kernelHash, request } = count
    let key = `${userHash} ${kernelHash} ${request} ${comm}`
    let total = group.stacks.get(key)
    if (total === undefined && (this.#isShort || this.#size >= maxTotals)) {
      comm = ''
      userHash = lostHash
      kernelHash = request = 0
      key = 'lost'
      total = group.stacks.get(key)
    }
    if (total === undefined) {
      this.#size++
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

  /** Takes in no stack that is new, until what was counted is taken. Gives nothing back by itself. */
  shed(): number {
    this.#isShort = true
    return 0
  }

  /** All that was counted, and begins anew. */
  take(): StackTotals {
    const taken = new StackTotals()
    taken.#all = this.#all
    taken.#size = this.#size
    taken.#held = this.#held
    this.#all = new Map()
    this.#size = 0
    this.#held = 0
    this.#isShort = false
    return taken
  }

  groups(): StackGroup[] {
    return [...this.#all.values()].flatMap(kinds => [...kinds.values()])
  }

  #group(group: Resource, kind: SampleKind): StackGroup {
    let kinds = this.#all.get(group)
    if (kinds === undefined) {
      kinds = new Map()
      this.#all.set(group, kinds)
    }
    let found = kinds.get(kind)
    if (found === undefined) {
      found = { group, kind, pids: new Set(), stacks: new Map() }
      kinds.set(kind, found)
      this.#held += groupBytes
    }
    return found
  }
}
