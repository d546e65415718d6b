import type { ByteRoom } from '../../lib/byte-room.ts'
import { objectOf, parseObject, textOf } from '../../lib/json-fields.ts'
import type { Container, EntitySink } from '../../model/entity.ts'
import { entityBytes } from '../../model/entity-bytes.ts'
import { dockerContainer } from '../_docker-container.ts'
import { maxContainers } from './container-list.ts'
import { type EngineClient, EngineError } from './engine-client.ts'

export interface InspectionsOptions {
  readonly client: EngineClient
  /** What stands before every path: `/v1.41`. */
  readonly prefix: string
  readonly runtime: string
  /** What the sink was told; outlives the connection. */
  readonly known: Map<string, Container>
  /** For those that are known. */
  readonly room: ByteRoom
  readonly sink: EntitySink
}

/** Questions at the same time: a daemon answers them one by one, and has others to serve. */
const maxQuestions = 4
const maxBytes = 1024 * 1024
const timeoutMs = 10_000
/** Linux, limits.h, PATH_MAX. */
const maxPathChars = 4096

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
    this.mended(id)
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
    const { client, prefix, runtime } = this.options
    const question = { counts: true }
    this.asked.set(id, question)
    try {
      const answer = parseObject(
        await client.ask({ path: `${prefix}/containers/${id}/json`, maxBytes, timeoutMs }),
      )
      if (answer === undefined) throw new EngineError('its description is no JSON object')
      if (question.counts) this.tell(dockerContainer(id, runtime, answer, logPath(answer, runtime)))
      this.mended(id)
    } catch (error) {
      if (question.counts) this.fail(id, seen, error as EngineError)
    } finally {
      this.asked.delete(id)
      this.next()
    }
  }

  private fail(id: string, seen: Container | undefined, { status, message }: EngineError): void {
    if (status === 404) {
      this.gone(id, seen)
      return
    }
    if (this.failed.size < maxContainers) this.failed.add(id)
    this.fault = `cannot read container ${id.slice(0, 12)}: ${message}`
  }

  private mended(id: string): void {
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

/** Docker tells a path for others of its drivers too; Podman calls its own driver by Docker's name. */
function logPath(description: Readonly<Record<string, unknown>>, runtime: string): string {
  const driver = textOf(objectOf(objectOf(description.HostConfig).LogConfig).Type)
  const path = textOf(description.LogPath, maxPathChars)
  const isFile = driver === 'json-file' || (runtime === 'podman' && driver === 'k8s-file')
  return isFile && path.startsWith('/') ? path : ''
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
