import type { ByteRoom } from '../../foundation/lib/byte-room.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Container } from '../../foundation/model/entity.ts'
import { entityBytes } from '../../foundation/model/entity-bytes.ts'
import type { ContainerSink } from './_runtime-source.ts'

export interface InspectionsOptions {
  /** Reads one container, within limits on size and time. Undefined: it no longer exists. */
  readonly read: (id: string) => Promise<Container | undefined>
  /** Containers reported to the sink; kept across connections. */
  readonly known: Map<string, Container>
  /** Memory for known containers. */
  readonly room: ByteRoom
  readonly sink: ContainerSink
}

/** Maximum number of containers of one host. */
export const maxContainers = 16_384
/** Maximum concurrent requests: a daemon answers them one by one, and has other clients. */
const maxQuestions = 4

/** Reads containers from a daemon: once per change of a container, and never twice at the same time. */
export class Inspections {
  /** Why a container could not be read; '' while all could. */
  fault = ''
  readonly #options: InspectionsOptions
  /** Containers to read, with the data known from their events in case they are gone by then. */
  readonly #waiting = new Map<string, Container | undefined>()
  /** Containers being read, and whether the answer is still current. */
  readonly #asked = new Map<string, { counts: boolean }>()
  readonly #failed = new Set<string>()
  #closed = false

  constructor(options: InspectionsOptions) {
    this.#options = options
  }

  /** A container changed. `seen` is reported if the container is gone before it can be read. */
  want(id: string, seen?: Container): void {
    if (this.#closed || this.#waiting.size >= maxContainers) return
    this.#waiting.set(id, seen ?? this.#waiting.get(id))
    this.#next()
  }

  /** A container was removed. `seen` is reported if it was never read in time. */
  gone(id: string, seen = this.#waiting.get(id)): void {
    if (this.#closed) return
    const { known, room, sink } = this.#options
    this.#waiting.delete(id)
    this.#fixed(id)
    const question = this.#asked.get(id)
    if (question !== undefined) question.counts = false
    if (seen !== undefined && !known.has(id)) this.#report(seen)
    room.give(entityBytes(known.get(id)))
    if (known.delete(id)) sink.containerGone(id)
  }

  /** Applies a list requested when the containers in `before` were known. Reads all of them, or only new ones. */
  reconcile(listed: ReadonlySet<string>, before: readonly string[], all: boolean): void {
    for (const id of before) if (!listed.has(id)) this.gone(id)
    for (const id of listed) if (all || this.#failed.has(id) || !this.#options.known.has(id)) this.want(id)
  }

  /** Stops requests and reports. */
  close(): void {
    this.#closed = true
    this.#waiting.clear()
    for (const question of this.#asked.values()) question.counts = false
  }

  #next(): void {
    for (const [id, seen] of this.#waiting) {
      if (this.#asked.size >= maxQuestions) return
      // A container that changes during its request is requested once more afterwards.
      if (this.#asked.has(id)) continue
      this.#waiting.delete(id)
      void this.#ask(id, seen)
    }
  }

  async #ask(id: string, seen: Container | undefined): Promise<void> {
    const question = { counts: true }
    this.#asked.set(id, question)
    try {
      const container = await this.#options.read(id)
      if (container === undefined) {
        if (question.counts) this.gone(id, seen)
        return
      }
      if (question.counts) this.#report(container)
      this.#fixed(id)
    } catch (error) {
      if (question.counts) this.#fail(id, error)
    } finally {
      this.#asked.delete(id)
      this.#next()
    }
  }

  #fail(id: string, error: unknown): void {
    if (this.#failed.size < maxContainers) this.#failed.add(id)
    this.fault = `cannot read container ${id.slice(0, 12)}: ${errorText(error)}`
  }

  #fixed(id: string): void {
    this.#failed.delete(id)
    if (this.#failed.size === 0) this.fault = ''
  }

  #report(container: Container): void {
    const { known, room, sink } = this.#options
    const before = known.get(container.id)
    if (before === undefined ? known.size >= maxContainers : isSame(before, container)) return
    if (!room.change(entityBytes(before), entityBytes(container))) return
    known.set(container.id, container)
    sink.container(container)
  }
}

function isSame(a: Container, b: Container): boolean {
  return (
    a.name === b.name &&
    a.state === b.state &&
    a.health === b.health &&
    a.pid === b.pid &&
    a.runtime === b.runtime &&
    a.image === b.image &&
    a.imageId === b.imageId &&
    a.logPath === b.logPath &&
    a.labels.size === b.labels.size &&
    [...a.labels].every(([name, label]) => b.labels.get(name) === label)
  )
}
