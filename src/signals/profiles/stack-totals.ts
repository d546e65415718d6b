import type { SampleKind, StackCount } from '../../foundation/model/raw-stack.ts'
import type { Resource } from '../../foundation/model/resource.ts'

/** Count of one stack of a group in threads of one name. */
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
/** Maximum stacks of all groups, with their threads and requests. Further ones count to a stack without frames. */
const maxTotals = 50_000
/** Memory of a counted stack with its key, of a process number, and of a group. */
const totalBytes = 320
const pidBytes = 40
const groupBytes = 600
/** Outside the 53 bits of stack hashes. */
const lostHash = -1

/** Counts of stacks by process group and kind. */
export class StackTotals {
  #size = 0
  #held = 0
  /** Memory is short: new stacks count to the stack without frames. */
  #isShort = false
  #all = new Map<Resource, Map<SampleKind, StackGroup>>()

  /** Approximate memory. */
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

  /** Refuses new stacks until the next `take`. Frees nothing immediately. */
  shed(): number {
    this.#isShort = true
    return 0
  }

  /** Returns all counts, and starts again. */
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
