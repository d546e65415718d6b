// Memory of connections and their requests, by process and control group, and which of them give way when it is full.

/** A holder of memory: a connection. */
export class Tenant {
  /** Bytes that it holds. */
  bytes = 0
  /** Used since the last search for a connection to give up. */
  used = false
  process: ProcessRoom | undefined
  before: Tenant | undefined
  after: Tenant | undefined
}

/** Nanoseconds for which a refusal is repeated without a new search. */
const refusalNs = 5e6
/** Part of the whole that is freed at a time. */
const turnPart = 1 / 64
/** Memory allowed beyond the limit: until connections have given way, and for growth of those already admitted. */
const overdraftPart = 1 / 16
const leastOverdraft = 8_192
/** A connection gives way to another one of its process only if it holds at least this many bytes more. */
const connectionSlack = 16_384

/** Remembers that a holder of this size found no room. Saves the search for the next ones. */
class Refusal {
  #ns = Number.NEGATIVE_INFINITY
  #bytes = 0

  applies(nowNs: number, bytes: number): boolean {
    return nowNs - this.#ns < refusalNs && bytes >= this.#bytes
  }

  note(nowNs: number, bytes: number): void {
    this.#ns = nowNs
    this.#bytes = bytes
  }
}

class ProcessRoom {
  readonly group: GroupRoom
  readonly pid: number
  bytes = 0
  count = 0
  /** Its connections, starting with the one checked longest ago. */
  first: Tenant | undefined
  last: Tenant | undefined
  readonly refused = new Refusal()

  constructor(group: GroupRoom, pid: number) {
    this.group = group
    this.pid = pid
  }

  push(tenant: Tenant): void {
    tenant.process = this
    tenant.before = this.last
    tenant.after = undefined
    if (this.last === undefined) this.first = tenant
    else this.last.after = tenant
    this.last = tenant
    this.count++
  }

  remove(tenant: Tenant): void {
    if (tenant.before === undefined) this.first = tenant.after
    else tenant.before.after = tenant.after
    if (tenant.after === undefined) this.last = tenant.before
    else tenant.after.before = tenant.before
    tenant.before = undefined
    tenant.after = undefined
    this.count--
  }

  /** Bytes of its largest connection. */
  get top(): number {
    let top = 0
    for (let each = this.first; each !== undefined; each = each.after) top = Math.max(top, each.bytes)
    return top
  }
}

class GroupRoom {
  readonly cgroup: number
  bytes = 0
  readonly processes = new Map<number, ProcessRoom>()
  readonly refused = new Refusal()
  readonly refusedProcesses = new Refusal()

  constructor(cgroup: number) {
    this.cgroup = cgroup
  }
}

/**
 * Memory that connections share, up to a bound. When it is full, those that hold least are admitted, and those that
 * hold most give way: first between control groups, then between processes of one, then between connections of one
 * process. The kernel reports the owner of a connection, so that no process gets more by using another name.
 */
export class StreamRoom<T extends Tenant> {
  bytes = 0
  count = 0
  /** A connection was admitted without room. */
  #owes = false
  readonly #most: number
  readonly #overdraft: number
  readonly #groups = new Map<number, GroupRoom>()

  /** `most`: bytes. */
  constructor(most: number) {
    this.#most = most
    this.#overdraft = Math.max(leastOverdraft, most * overdraftPart)
  }

  /** Some connection has to give way. */
  get isOver(): boolean {
    return this.#owes || this.bytes > this.#most + this.#overdraft / 2
  }

  add(tenant: T, cgroup: number, pid: number, bytes: number): void {
    let group = this.#groups.get(cgroup)
    if (group === undefined) {
      group = new GroupRoom(cgroup)
      this.#groups.set(cgroup, group)
    }
    let process = group.processes.get(pid)
    if (process === undefined) {
      process = new ProcessRoom(group, pid)
      group.processes.set(pid, process)
    }
    process.push(tenant)
    this.count++
    this.grow(tenant, bytes)
  }

  /** Removes it, with everything that it holds. */
  remove(tenant: T): void {
    const { process } = tenant
    if (process === undefined) return
    this.grow(tenant, -tenant.bytes)
    process.remove(tenant)
    tenant.process = undefined
    this.count--
    if (process.count > 0) return
    process.group.processes.delete(process.pid)
    if (process.group.processes.size === 0) this.#groups.delete(process.group.cgroup)
  }

  /** Adjusts its memory by `bytes`, which may be negative. */
  grow(tenant: T, bytes: number): void {
    const { process } = tenant
    if (process === undefined) return
    tenant.bytes += bytes
    process.bytes += bytes
    process.group.bytes += bytes
    this.bytes += bytes
  }

  /**
   * Whether it may grow by `bytes`. If the room is full: only if another one holds so much more that it has to give
   * way, which happens in `reclaim`.
   */
  mayGrow(tenant: T, bytes: number, nowNs: number): boolean {
    const over = this.bytes + bytes - this.#most
    if (over <= 0) return true
    if (over > this.#overdraft || !this.#hasPrecedence(tenant, nowNs)) return false
    this.#owes = true
    return true
  }

  #hasPrecedence({ process, bytes }: Tenant, nowNs: number): boolean {
    if (process === undefined) return false
    const { group } = process
    const slack = this.#most * turnPart
    if (group.refused.applies(nowNs, 0)) return false
    const heaviest = this.#heaviestGroup()
    if (heaviest !== group) {
      if (heaviest.bytes > group.bytes + slack) return true
      group.refused.note(nowNs, 0)
      return false
    }
    if (group.refusedProcesses.applies(nowNs, process.bytes)) return false
    const other = heaviestProcess(group)
    if (other !== process) {
      if (other.bytes > process.bytes + slack) return true
      group.refusedProcesses.note(nowNs, process.bytes)
      return false
    }
    if (process.refused.applies(nowNs, bytes)) return false
    if (process.top > 2 * bytes + connectionSlack) return true
    process.refused.note(nowNs, bytes)
    return false
  }

  /** Bytes to free at a time once the room is full. */
  get turn(): number {
    return Math.max(0, this.bytes - this.#most) + this.#most * turnPart
  }

  /**
   * Has those that hold most give up connections, until `bytes` are free and there are `count` fewer; at least one.
   * `giveUp` has to remove the one that it is given. Returns the freed bytes.
   */
  reclaim(bytes: number, count: number, giveUp: (tenant: T) => void): number {
    this.#owes = false
    const { bytes: held, count: number } = this
    if (number === 0) return 0
    const isEnough = () => held - this.bytes >= bytes && number - this.count >= Math.max(1, count)
    const group = this.#heaviestGroup()
    const floor = heaviestProcess(group).bytes / 2
    for (const process of group.processes.values()) {
      if (process.bytes < floor) continue
      reclaimFrom(process, floor, isEnough, giveUp as (tenant: Tenant) => void)
      if (isEnough()) break
    }
    return held - this.bytes
  }

  #heaviestGroup(): GroupRoom {
    let heaviest: GroupRoom | undefined
    for (const group of this.#groups.values())
      if (heaviest === undefined || group.bytes > heaviest.bytes) heaviest = group
    return heaviest!
  }
}

function heaviestProcess(group: GroupRoom): ProcessRoom {
  let heaviest: ProcessRoom | undefined
  for (const process of group.processes.values())
    if (heaviest === undefined || process.bytes > heaviest.bytes) heaviest = process
  return heaviest!
}

/** Gives up connections that hold at least half as much as the largest; recently used ones get a second chance. */
function reclaimFrom(
  process: ProcessRoom,
  floor: number,
  isEnough: () => boolean,
  giveUp: (tenant: Tenant) => void,
): void {
  const least = process.top / 2
  const once = process.count
  let each = process.first
  for (let looks = 0; each !== undefined && looks < 2 * once && process.bytes >= floor; looks++) {
    const next: Tenant | undefined = each.after
    if (each.bytes >= least) {
      if (each.used && looks < once) {
        each.used = false
        process.remove(each)
        process.push(each)
      } else {
        giveUp(each)
        if (isEnough()) return
      }
    }
    each = next ?? process.first
  }
}
