import {
  type JsonObject,
  listOf,
  objectOf,
  parseObject,
  textOf,
} from '../../../foundation/lib/json-fields.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { dockerContainer } from '../_docker-container.ts'
import { Inspections } from '../_inspections.ts'
import type { Daemon, RuntimeSession, SessionOptions } from '../_runtime-source.ts'
import { containerEvent } from './container-event.ts'
import { listedContainers } from './container-list.ts'
import { EngineClient, EngineError, type EnginePlace } from './engine-client.ts'

/** An engine that responded. */
export interface Engine {
  /** `docker` or `podman`. */
  readonly runtime: string
  readonly version: string
  /** Prefix of every path, such as `/v1.41`. */
  readonly prefix: string
}

const questionMs = 5_000
const maxAnswerBytes = 1024 * 1024
const inspectMs = 10_000
const listMs = 30_000
/** Maximum size of a list; enough for several thousand containers. */
const maxListBytes = 16 * 1024 * 1024
/** Maximum size of an event, which has the labels of its container. */
const maxLineBytes = 1024 * 1024
/** Minimum Engine API version, 1.24 (Docker 1.12), which has all fields that svc reads. */
const leastMinor = 24
/** Linux, limits.h, PATH_MAX. */
const maxPathChars = 4096
const onlyContainers = encodeURIComponent(JSON.stringify({ type: ['container'] }))

/** Reads runtime and version of an engine. Rejects with an `EngineError`, also if it is not an engine. */
export async function identifyEngine(client: EngineClient): Promise<Engine> {
  const answer = parseObject(
    await client.ask({ path: '/version', maxBytes: maxAnswerBytes, timeoutMs: questionMs }),
  )
  const api = textOf(answer?.ApiVersion, 16)
  const minor = Number(/^1\.(\d{1,4})$/.exec(api)?.[1] ?? Number.NaN)
  if (answer === undefined || Number.isNaN(minor)) throw new EngineError('not the Docker Engine API')
  if (minor < leastMinor)
    throw new EngineError(`Engine API ${api} is too old; 1.${leastMinor} or newer is required`)
  const isPodman = listOf(answer.Components).some(part => objectOf(part).Name === 'Podman Engine')
  return { runtime: isPodman ? 'podman' : 'docker', version: textOf(answer.Version, 128), prefix: `/v${api}` }
}

/** Reports the containers of one daemon over one event stream. */
export class EngineSession implements RuntimeSession {
  readonly #client: EngineClient
  /** Whether its paths are those of this host, which is true only over a Unix socket of this host. */
  readonly #isLocal: boolean
  readonly #options: SessionOptions
  readonly #inspections: Inspections
  #engine: Engine = { runtime: '', version: '', prefix: '' }
  #missed = false
  #end: EngineError | undefined
  #interrupt: () => void = () => undefined

  constructor(place: EnginePlace, options: SessionOptions) {
    const { known, room, sink } = options
    this.#client = new EngineClient(place)
    this.#isLocal = place.socketPath !== ''
    this.#options = options
    this.#inspections = new Inspections({ read: id => this.#inspect(id), known, room, sink })
  }

  /** Reason why a container could not be read; '' if all could. */
  get fault(): string {
    return this.#inspections.fault
  }

  close(): void {
    this.#inspections.close()
    this.#client.close()
  }

  /** Rejects with an `EngineError`. */
  async run(listed: (daemon: Daemon) => void): Promise<never> {
    const client = this.#client
    const engine = await identifyEngine(client)
    this.#engine = engine
    // Before the list, so that no event is missed.
    await client.follow({
      path: `${engine.prefix}/events?filters=${onlyContainers}`,
      timeoutMs: questionMs,
      maxLineBytes,
      line: bytes => this.#hear(bytes),
      missed: () => {
        this.#missed = true
      },
      ended: error => {
        this.#end = error
        this.#interrupt()
      },
    })
    for (let round = 0; ; round++) {
      const all = round === 0 || this.#missed
      this.#missed = false
      await this.#list(all)
      const daemon = { runtime: engine.runtime, version: engine.version, rootDir: '' }
      listed(daemon)
      if (round === 0 && this.#isLocal && engine.runtime === 'docker')
        void this.#rootDir().then(rootDir => listed({ ...daemon, rootDir }))
      await this.#wait(this.#options.refreshMs)
    }
  }

  /** Data directory of Docker; '' if not reported. */
  async #rootDir(): Promise<string> {
    try {
      const path = `${this.#engine.prefix}/info`
      const answer = await this.#client.ask({ path, maxBytes: maxAnswerBytes, timeoutMs: listMs })
      const root = textOf(parseObject(answer)?.DockerRootDir, maxPathChars)
      return root.startsWith('/') ? root : ''
    } catch {
      return '' // The usual directory is a good guess; a missing daemon is detected elsewhere.
    }
  }

  async #inspect(id: string): Promise<Container | undefined> {
    const { prefix, runtime } = this.#engine
    const path = `${prefix}/containers/${id}/json`
    try {
      const answer = await this.#client.ask({ path, maxBytes: maxAnswerBytes, timeoutMs: inspectMs })
      const description = parseObject(answer)
      if (description === undefined) throw new EngineError('the container description is not a JSON object')
      return dockerContainer(id, runtime, description, this.#isLocal ? logPath(description, runtime) : '')
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined
      throw error
    }
  }

  #hear(line: Buffer): void {
    const event = containerEvent(line, this.#engine.runtime)
    if (event?.gone) this.#inspections.gone(event.id, event.seen)
    else if (event !== undefined) this.#inspections.want(event.id, event.seen)
  }

  /** Events may be lost: Docker drops those that a client does not read immediately (moby, pkg/pubsub). */
  async #list(all: boolean): Promise<void> {
    const before = [...this.#options.known.keys()]
    const path = `${this.#engine.prefix}/containers/json?all=1`
    const listed = listedContainers(
      await this.#client.ask({ path, maxBytes: maxListBytes, timeoutMs: listMs }),
    )
    if (listed === undefined) throw new EngineError('the container list is not a JSON list')
    this.#inspections.reconcile(listed, before, all)
  }

  async #wait(ms: number): Promise<void> {
    if (this.#end === undefined)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, ms).unref()
        this.#interrupt = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    if (this.#end !== undefined) throw this.#end
  }
}

/** Docker reports a path for other drivers too; Podman uses Docker's name for its own driver. */
function logPath(description: JsonObject, runtime: string): string {
  const driver = textOf(objectOf(objectOf(description.HostConfig).LogConfig).Type)
  const path = textOf(description.LogPath, maxPathChars)
  const isFile = driver === 'json-file' || (runtime === 'podman' && driver === 'k8s-file')
  return isFile && path.startsWith('/') ? path : ''
}
