import { BoundedMap } from '../lib/bounded-map.ts'
import type { Resource } from '../model/resource.ts'
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

/** Resources that ended and that a reader has not asked for. */
const maxEnded = 8_192
/** One process with its two dozen attributes, without its texts (measured: 1.9 KiB). */
const processBytes = 2_048
/** A text without its characters. */
const textBytes = 24

/** The processes that a table knows, those that ended of late, and what all of that takes in memory. */
export class KnownProcesses {
  /** Names that processes had told, let go of because memory was short. */
  shed = 0
  readonly #running: BoundedMap<number, Process>
  readonly #departed: BoundedMap<number, Process>
  /** Resources that ended, for each of those who ask. */
  readonly #endings = new Map<object, Resource[]>()
  #bytes = 0

  constructor(most: number) {
    this.#running = new BoundedMap(most, (_pid, process) => {
      this.#bytes -= process.bytes
      this.end(process.resource)
    })
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
    this.#count(process)
    this.#running.set(pid, process)
  }

  delete(pid: number): void {
    const process = this.#running.get(pid)
    if (process === undefined) return
    this.#running.delete(pid)
    this.#bytes -= process.bytes
  }

  /** The callback may delete the process that it is given. */
  forEach(visit: (process: Process, pid: number) => void): void {
    this.#running.forEach(visit)
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

  end(resource: Resource): void {
    // Nobody asks: the oldest are let go, so that the list cannot grow without bound.
    for (const ended of this.#endings.values()) {
      if (ended.length >= maxEnded) ended.shift()
      ended.push(resource)
    }
  }

  /** The resources that ended since the last call; each `reader` is told all, from its first question on. */
  ended(reader: object): Resource[] {
    const ended = this.#endings.get(reader)
    if (ended !== undefined) return ended.splice(0)
    this.#endings.set(reader, [])
    return []
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

  #count(process: Process): void {
    process.bytes = processBytes + bytesOf(process)
    this.#bytes += process.bytes
  }
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
