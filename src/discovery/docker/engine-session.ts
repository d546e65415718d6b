import type { ByteRoom } from '../../lib/byte-room.ts'
import { listOf, objectOf, parseObject, textOf } from '../../lib/json-fields.ts'
import type { Container, EntitySink } from '../../model/entity.ts'
import { containerEvent } from './container-event.ts'
import { listedContainers } from './container-list.ts'
import { type EngineClient, EngineError } from './engine-client.ts'
import { Inspections } from './inspections.ts'

/** Who answers. */
export interface Engine {
  /** `docker` or `podman`. */
  readonly runtime: string
  readonly version: string
  /** What stands before every path: `/v1.41`. */
  readonly prefix: string
}

export interface EngineSessionOptions {
  readonly client: EngineClient
  readonly engine: Engine
  /** What the sink was told; outlives the session. */
  readonly known: Map<string, Container>
  readonly room: ByteRoom
  readonly sink: EntitySink
  /** Between two looks at the list, for what events did not tell. */
  readonly refreshMs: number
}

const questionMs = 5_000
const maxAnswerBytes = 1024 * 1024
const listMs = 30_000
/** A list of some thousand containers. */
const maxListBytes = 16 * 1024 * 1024
/** An event carries the labels of its container. */
const maxLineBytes = 1024 * 1024
/** The least version of the Engine API is 1.24, of Docker 1.12: what is read has been there since. */
const leastMinor = 24
const onlyContainers = encodeURIComponent(JSON.stringify({ type: ['container'] }))

/** Asks who is there. Rejects with an `EngineError`, also where it is somebody else. */
export async function meetEngine(client: EngineClient): Promise<Engine> {
  const answer = parseObject(
    await client.ask({ path: '/version', maxBytes: maxAnswerBytes, timeoutMs: questionMs }),
  )
  const api = textOf(answer?.ApiVersion, 16)
  const minor = Number(/^1\.(\d{1,4})$/.exec(api)?.[1] ?? Number.NaN)
  if (answer === undefined || Number.isNaN(minor))
    throw new EngineError('it does not speak the Engine API of Docker')
  if (minor < leastMinor)
    throw new EngineError(`it speaks version ${api} of the Engine API, and 1.${leastMinor} is needed`)
  const isPodman = listOf(answer.Components).some(part => objectOf(part).Name === 'Podman Engine')
  return { runtime: isPodman ? 'podman' : 'docker', version: textOf(answer.Version, 128), prefix: `/v${api}` }
}

/** Where Docker keeps its files; '' where it does not tell. */
export async function dockerRoot(client: EngineClient, { runtime, prefix }: Engine): Promise<string> {
  if (runtime !== 'docker') return ''
  try {
    const path = `${prefix}/info`
    const answer = await client.ask({ path, maxBytes: maxAnswerBytes, timeoutMs: listMs })
    const root = textOf(parseObject(answer)?.DockerRootDir, 4096)
    return root.startsWith('/') ? root : ''
  } catch {
    return '' // The usual place is as good a guess; whether the daemon answers is seen elsewhere.
  }
}

/** Follows the containers of one daemon over one stream of events. */
export class EngineSession {
  private readonly options: EngineSessionOptions
  private readonly inspections: Inspections
  private missed = false
  private end: EngineError | undefined
  private interrupt: () => void = () => undefined

  constructor(options: EngineSessionOptions) {
    const { client, engine, known, room, sink } = options
    this.options = options
    this.inspections = new Inspections({ client, known, room, sink, ...engine })
  }

  /** Why a container could not be read; '' while all could. */
  get fault(): string {
    return this.inspections.fault
  }

  /** From now on the sink is told nothing. */
  close(): void {
    this.inspections.close()
  }

  /** Calls `listed` as soon as the containers are known. Rejects with an `EngineError` when the daemon is lost. */
  async run(listed: () => void): Promise<never> {
    try {
      return await this.follow(listed)
    } finally {
      this.close()
    }
  }

  private async follow(listed: () => void): Promise<never> {
    const { client, engine, refreshMs } = this.options
    // Before the list, so that nothing is missed between the two.
    await client.follow({
      path: `${engine.prefix}/events?filters=${onlyContainers}`,
      timeoutMs: questionMs,
      maxLineBytes,
      line: bytes => this.hear(bytes),
      missed: () => {
        this.missed = true
      },
      ended: error => {
        this.end = error
        this.interrupt()
      },
    })
    for (let all = true; ; all = this.missed) {
      this.missed = false
      await this.list(all)
      listed()
      await this.wait(refreshMs)
    }
  }

  private hear(line: Buffer): void {
    const event = containerEvent(line, this.options.engine.runtime)
    if (event?.gone) this.inspections.gone(event.id, event.seen)
    else if (event !== undefined) this.inspections.want(event.id, event.seen)
  }

  /** Events may be lost: Docker drops those that are not taken at once (moby, pkg/pubsub). */
  private async list(all: boolean): Promise<void> {
    const { client, engine, known } = this.options
    const before = [...known.keys()]
    const path = `${engine.prefix}/containers/json?all=1`
    const listed = listedContainers(await client.ask({ path, maxBytes: maxListBytes, timeoutMs: listMs }))
    if (listed === undefined) throw new EngineError('its list of containers is no JSON list')
    this.inspections.reconcile(listed, before, all)
  }

  private async wait(ms: number): Promise<void> {
    if (this.end === undefined)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, ms).unref()
        this.interrupt = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    if (this.end !== undefined) throw this.end
  }
}
