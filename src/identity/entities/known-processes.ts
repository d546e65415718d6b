import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../foundation/lib/fair-share.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { ContainerPlace } from './container-place.ts'
import { emptyEnvironment } from './process-environment.ts'
import type { ProcessIdentity } from './process-resource.ts'
import type { Verdict } from './selection.ts'
import type { Surroundings } from './surroundings.ts'

/** A process, as the table knows it. */
export interface Process {
  identity: ProcessIdentity
  place: ContainerPlace
  surroundings: Surroundings | undefined
  resource: Resource
  /** Whose place in the table it has. */
  holder: Owner
  /** What it takes in memory, about. */
  bytes: number
  comm: string
  readonly madeMs: number
  /** When it was last looked where it runs. */
  placedMs: number
  checkedMs: number
  /** When the kernel told its end, or it was found to have ended. */
  endedMs: number | undefined
  /** Its end, once it was let go of. */
  departedMs: number | undefined
  /** Where it answered last; 0: nowhere yet. */
  servedPort: number
  /** All of those ports, up to a bound. */
  readonly ports: number[]
  /** Whether it is observed; undefined: to be decided. */
  verdict: Verdict | undefined
  judgedMs: number
  /** When it last exported spans of its own. */
  exportedMs: number
  /** A call of it was seen, be it told or not. */
  called: boolean
}

/** Of one process. */
const maxPorts = 64
/** So many of the places are given up at once, so that whoever is kept looks for them seldom. */
const givenPart = 1 / 64
/** One process with its two dozen attributes, without its texts (measured: 1.9 KiB). */
const processBytes = 2_048
/** A text without its characters. */
const textBytes = 24

/** Told of a resource that nothing comes of any more, and of the one that its process has from now on, if any. */
export type EndListener = (resource: Resource, next?: Resource) => void

/**
 * The processes that a table knows, those that ended of late, and what all of that takes in memory. Their places are
 * shared by owner: whoever has most gives up some when there are no more.
 */
export class KnownProcesses {
  /** Names that processes had told, let go of because memory was short. */
  shed = 0
  /** Processes that lost their places to those of the same owner, and of others. */
  readonly losses = { refused: 0, taken: 0 } satisfies ShareLosses
  readonly #running = new Map<number, Process>()
  readonly #share: FairShare
  /** Of those, the ones that ended, in the order in which that was told. */
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

  /** Bytes of memory, about. */
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

  /** The process that is given may be deleted meanwhile. */
  all(): IterableIterator<[number, Process]> {
    return this.#running.entries()
  }

  /** Its end was told. */
  ending(process: Process, nowMs: number): void {
    process.endedMs = nowMs
    this.#ending.delete(process)
    this.#ending.add(process)
  }

  /** Lets go of those whose end was told before `ms`. */
  leave(ms: number): void {
    for (const process of this.#ending) {
      if (process.endedMs! > ms) return
      this.markEnded(process, process.endedMs!)
    }
  }

  /** It has ended, and counts as one that ended of late. */
  markEnded(process: Process, nowMs: number): void {
    const { pid } = process.identity
    this.delete(pid)
    process.endedMs ??= nowMs
    process.departedMs ??= process.endedMs
    this.depart(pid, process)
    this.end(process.resource)
  }

  /** It is counted anew: something of it changed. */
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

  /** Nothing comes of a resource any more. `next`: the one that its process has instead. */
  end(resource: Resource, next?: Resource): void {
    for (const listener of this.#listeners) listener(resource, next)
  }

  onEnd(listener: EndListener): void {
    this.#listeners.push(listener)
  }

  /**
   * Gives back about so many bytes, and returns how many it did: those that ended, then what processes told of
   * themselves, which `strip` takes from one. Who it is and what it runs in stays.
   */
  giveBack(bytes: number, strip: (process: Process, pid: number) => void): number {
    const before = this.#bytes
    this.#departed.forEach((_process, pid) => {
      if (before - this.#bytes < bytes) this.forget(pid)
    })
    const telling: [number, Process][] = []
    if (before - this.#bytes < bytes)
      this.#running.forEach((process, pid) => {
        if (process.identity.environment.attributes.length > 0) telling.push([pid, process])
      })
    telling.sort((a, b) => b[1].bytes - a[1].bytes)
    for (const [pid, process] of telling) {
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

  /** A place for one of an owner's processes: those that are missed least lose theirs. */
  #makeRoom(owner: Owner): void {
    if (this.#share.hasRoom(1)) return
    // Where each group has one alone, nobody has more than the owner would.
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

/** It has answered at a port. */
export function serve(process: Process, port: number): void {
  process.servedPort = port
  const { ports } = process
  if (ports.length < maxPorts && !ports.includes(port)) ports.push(port)
}

/** What ended is missed least, and what calls most. */
function worth({ endedMs, called }: Process): number {
  return endedMs !== undefined ? 0 : called ? 2 : 1
}

function nameIn(attributes: readonly (readonly [string, string])[]): string {
  return attributes.find(([key]) => key === 'service.name')?.[1] ?? ''
}

/** Texts of the kernel and of the runtime are short: those that somebody chose are counted. */
function bytesOf({ identity, ports }: Process): number {
  let bytes = 8 * ports.length + 2 * (identity.executable.length + identity.command.length)
  for (const [key, value] of identity.environment.attributes)
    bytes += 2 * textBytes + key.length + 2 * value.length
  return bytes
}
