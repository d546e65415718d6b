import type { ByteRoom } from '../lib/byte-room.ts'
import { errorText } from '../lib/logger.ts'
import type { Container } from '../model/entity.ts'
import { entityBytes } from '../model/entity-bytes.ts'
import type { ContainerSink } from './_runtime-source.ts'

export interface InspectionsOptions {
  /** Asks for one, within bounds in bytes and time. Undefined: it is no more. */
  readonly read: (id: string) => Promise<Container | undefined>
  /** What the sink was told; outlives the connection. */
  readonly known: Map<string, Container>
  /** For those that are known. */
  readonly room: ByteRoom
  readonly sink: ContainerSink
}

/** On one host, at most. */
export const maxContainers = 16_384
/** Questions at the same time: a daemon answers them one by one, and has others to serve. */
const maxQuestions = 4

/** Asks a daemon for containers, each as often as something happened to it, but no more than once at a time. */
export class Inspections {
  /** Why a container could not be read; '' while all could. */
  fault = ''
  private readonly options: InspectionsOptions
  /** Those to ask for, with what is known of them if they are gone by then. */
  private readonly waiting = new Map<string, Container | undefined>()
  /** Those that are asked for, and whether the answer still counts. */
  private readonly asked = new Map<string, { counts: boolean }>()
  private readonly failed = new Set<string>()
  private closed = false

  constructor(options: InspectionsOptions) {
    this.options = options
  }

  /** Something happened to it. `seen` is told of it if it is gone before it can be asked for. */
  want(id: string, seen?: Container): void {
    if (this.closed || this.waiting.size >= maxContainers) return
    this.waiting.set(id, seen ?? this.waiting.get(id))
    this.next()
  }

  /** It is no more. `seen` is told of it if it was never asked for in time. */
  gone(id: string, seen = this.waiting.get(id)): void {
    if (this.closed) return
    const { known, room, sink } = this.options
    this.waiting.delete(id)
    this.fixed(id)
    const question = this.asked.get(id)
    if (question !== undefined) question.counts = false
    if (seen !== undefined && !known.has(id)) this.tell(seen)
    room.give(entityBytes(known.get(id)))
    if (known.delete(id)) sink.containerGone(id)
  }

  /** Takes a list that was asked for when those of `before` were known. All are asked for, or those that are new. */
  reconcile(listed: ReadonlySet<string>, before: readonly string[], all: boolean): void {
    for (const id of before) if (!listed.has(id)) this.gone(id)
    for (const id of listed) if (all || this.failed.has(id) || !this.options.known.has(id)) this.want(id)
  }

  /** From now on nothing is asked, and nothing is told. */
  close(): void {
    this.closed = true
    this.waiting.clear()
    for (const question of this.asked.values()) question.counts = false
  }

  private next(): void {
    for (const [id, seen] of this.waiting) {
      if (this.asked.size >= maxQuestions) return
      // One that changed while it is asked for is asked for again, once.
      if (this.asked.has(id)) continue
      this.waiting.delete(id)
      void this.ask(id, seen)
    }
  }

  private async ask(id: string, seen: Container | undefined): Promise<void> {
    const question = { counts: true }
    this.asked.set(id, question)
    try {
      const container = await this.options.read(id)
      if (container === undefined) {
        if (question.counts) this.gone(id, seen)
        return
      }
      if (question.counts) this.tell(container)
      this.fixed(id)
    } catch (error) {
      if (question.counts) this.fail(id, error)
    } finally {
      this.asked.delete(id)
      this.next()
    }
  }

  private fail(id: string, error: unknown): void {
    if (this.failed.size < maxContainers) this.failed.add(id)
    this.fault = `cannot read container ${id.slice(0, 12)}: ${errorText(error)}`
  }

  private fixed(id: string): void {
    this.failed.delete(id)
    if (this.failed.size === 0) this.fault = ''
  }

  private tell(container: Container): void {
    const { known, room, sink } = this.options
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
