import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../foundation/lib/fair-share.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { ContainerPlace } from './container-place.ts'
import { emptyEnvironment } from './process-environment.ts'
import type { ProcessIdentity } from './process-resource.ts'
import type { Verdict } from './selection.ts'
import type { Surroundings } from './surroundings.ts'

/** Entry of one process. */
export interface Process {
  identity: ProcessIdentity
  place: ContainerPlace
  surroundings: Surroundings | undefined
  resource: Resource
  /** Owner that the entry counts against. */
  holder: Owner
  /** Approximate memory. */
  bytes: number
  comm: string
  readonly madeMs: number
  /** Time of the last control group lookup. */
  placedMs: number
  checkedMs: number
  /** Time when the kernel reported its exit, or it was found to have ended. */
  endedMs: number | undefined
  /** Time of its end, once removed from the running processes. */
  departedMs: number | undefined
  /** Port where it last responded; 0: none yet. */
  servedPort: number
  /** All such ports, up to `maxPorts`. */
  readonly ports: number[]
  /** Whether it is observed; undefined: not decided yet. */
  verdict: Verdict | undefined
  judgedMs: number
  /** Time of its last export of its own spans. */
  exportedMs: number
  /** Whether a call of it was seen, reported or not. */
  called: boolean
}

/** Maximum ports of one process. */
const maxPorts = 64
/** Part of the table that is evicted at once, so that searches for room are rare. */
const givenPart = 1 / 64
/** One process with its two dozen attributes, without texts (measured: 1.9 KiB). */
const processBytes = 2_048
/** Overhead of a text. */
const textBytes = 24

/** Called for a resource without further telemetry, with the resource that replaces it, if any. */
export type EndListener = (resource: Resource, next?: Resource) => void

/**
 * Known processes and those that ended recently, with their approximate memory. Owners share the table: when it is
 * full, the owner with the most entries loses some.
 */
export class KnownProcesses {
  /** Attributes from process environments that were released to save memory. */
  shed = 0
  /** Processes evicted for the same owner, and for others. */
  readonly losses = { refused: 0, taken: 0 } satisfies ShareLosses
  readonly #running = new Map<number, Process>()
  readonly #share: FairShare
  /** Running processes whose exit was reported, in that order. */
  readonly #ending = new Set<Process>()
  readonly #departed: BoundedMap<number, Process>
  readonly #listeners: EndListener[] = []
  #bytes = 0

  constructor(most: number) {
    this.#share = new FairShare(most)
    this.#departed = new BoundedMap(Math.ceil(most / 4), (_pid, process) => {
      this.#bytes -= process.bytes
    })
  }

  get size(): number {
    return this.#running.size
  }

  /** Approximate memory. */
  get bytes(): number {
    return this.#bytes
  }

  get(pid: number): Process | undefined {
    return this.#running.get(pid)
  }

  set(pid: number, process: Process): void {
    this.delete(pid)
    process.holder = process.identity.account
    this.#makeRoom(process.holder)
    this.#count(process)
    this.#running.set(pid, process)
    this.#share.add(process.holder, 1)
    if (process.endedMs !== undefined) this.#ending.add(process)
  }

  delete(pid: number): void {
    const process = this.#running.get(pid)
    if (process === undefined) return
    this.#running.delete(pid)
    this.#ending.delete(process)
    this.#share.remove(process.holder, 1)
    this.#bytes -= process.bytes
  }

  /** Entries may be deleted during the iteration. */
  all(): IterableIterator<[number, Process]> {
    return this.#running.entries()
  }

  /** Its exit was reported. */
  ending(process: Process, nowMs: number): void {
    process.endedMs = nowMs
    this.#ending.delete(process)
    this.#ending.add(process)
  }

  /** Removes processes whose exit was reported before `ms`. */
  leave(ms: number): void {
    for (const process of this.#ending) {
      if (process.endedMs! > ms) return
      this.markEnded(process, process.endedMs!)
    }
  }

  /** Moves a process to those that ended recently. */
  markEnded(process: Process, nowMs: number): void {
    const { pid } = process.identity
    this.delete(pid)
    process.endedMs ??= nowMs
    process.departedMs ??= process.endedMs
    this.depart(pid, process)
    this.end(process.resource)
  }

  /** Counts the memory of a changed process again. */
  changed(pid: number, process: Process): void {
    if (this.#running.get(pid) !== process) return
    this.#bytes -= process.bytes
    this.#count(process)
  }

  departed(pid: number): Process | undefined {
    return this.#departed.get(pid)
  }

  depart(pid: number, process: Process): void {
    this.forget(pid)
    this.#count(process)
    this.#departed.set(pid, process)
  }

  forget(pid: number): void {
    const process = this.#departed.get(pid)
    if (process === undefined) return
    this.#departed.delete(pid)
    this.#bytes -= process.bytes
  }

  /** Reports the end of a resource. `next`: resource that replaces it. */
  end(resource: Resource, next?: Resource): void {
    for (const listener of this.#listeners) listener(resource, next)
  }

  onEnd(listener: EndListener): void {
    this.#listeners.push(listener)
  }

  /**
   * Frees about `bytes` and returns the amount: first ended processes, then the attributes of process environments,
   * which `strip` removes from one process. Identity and surroundings are kept.
   */
  giveBack(bytes: number, strip: (process: Process, pid: number) => void): number {
    const before = this.#bytes
    this.#departed.forEach((_process, pid) => {
      if (before - this.#bytes < bytes) this.forget(pid)
    })
    const described: [number, Process][] = []
    if (before - this.#bytes < bytes)
      this.#running.forEach((process, pid) => {
        if (process.identity.environment.attributes.length > 0) described.push([pid, process])
      })
    described.sort((a, b) => b[1].bytes - a[1].bytes)
    for (const [pid, process] of described) {
      if (before - this.#bytes >= bytes) break
      const { environment } = process.identity
      this.shed += environment.attributes.length
      process.identity = {
        ...process.identity,
        environment: {
          ...emptyEnvironment,
          serviceName: environment.serviceName || nameIn(environment.attributes),
        },
      }
      strip(process, pid)
    }
    return before - this.#bytes
  }

  /** Makes room for one of an owner's processes, by evicting the least useful ones. */
  #makeRoom(owner: Owner): void {
    if (this.#share.hasRoom(1)) return
    // If every group has a single entry, no owner has more than this one would.
    const giver = this.#share.giver(owner, 1) ?? this.#share.richest() ?? owner
    const isOwn = isSameOwner(giver, owner)
    const spare = isOwn
      ? this.#share.usedBy(giver)
      : this.#share.usedBy(giver) - this.#share.usedBy(owner) - 1
    const most = Math.max(1, Math.min(spare, Math.ceil(this.#share.capacity * givenPart)))
    const theirs: Process[] = []
    for (const process of this.#running.values()) if (isSameOwner(giver, process.holder)) theirs.push(process)
    theirs.sort((a, b) => worth(a) - worth(b) || a.checkedMs - b.checkedMs)
    for (const process of theirs.slice(0, most)) {
      if (isOwn) this.losses.refused++
      else this.losses.taken++
      if (process.endedMs !== undefined) this.markEnded(process, process.endedMs)
      else {
        this.delete(process.identity.pid)
        this.end(process.resource)
      }
    }
  }

  #count(process: Process): void {
    process.bytes = processBytes + bytesOf(process)
    this.#bytes += process.bytes
  }
}

/** The process responded on a port. */
export function serve(process: Process, port: number): void {
  process.servedPort = port
  const { ports } = process
  if (ports.length < maxPorts && !ports.includes(port)) ports.push(port)
}

/** Ended processes are worth least, those with calls most. */
function worth({ endedMs, called }: Process): number {
  return endedMs !== undefined ? 0 : called ? 2 : 1
}

function nameIn(attributes: readonly (readonly [string, string])[]): string {
  return attributes.find(([key]) => key === 'service.name')?.[1] ?? ''
}

/** Texts of the kernel and the runtime are short; only texts that users choose are counted. */
function bytesOf({ identity, ports }: Process): number {
  let bytes = 8 * ports.length + 2 * (identity.executable.length + identity.command.length)
  for (const [key, value] of identity.environment.attributes)
    bytes += 2 * textBytes + key.length + 2 * value.length
  return bytes
}
