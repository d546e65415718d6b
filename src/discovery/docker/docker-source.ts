import { Backoff } from '../../lib/backoff.ts'
import { ByteRoom } from '../../lib/byte-room.ts'
import { errorText, type Logger } from '../../lib/logger.ts'
import type { Container, EntitySink, SourceState } from '../../model/entity.ts'
import { entityBytes } from '../../model/entity-bytes.ts'
import { EngineClient, EngineError } from './engine-client.ts'
import { dockerRoot, type Engine, EngineSession, meetEngine } from './engine-session.ts'
import { findSockets } from './socket-path.ts'

export interface DockerSourceOptions {
  /** A path or `unix://…`; '': that of `$DOCKER_HOST`, Docker's or Podman's, whichever answers first. */
  readonly endpoint: string
  readonly sink: EntitySink
  /** For what is known; without it there is no bound in bytes. */
  readonly room?: ByteRoom
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Where the host's root is mounted. */
  readonly rootfs?: string
  /** Between two looks at the list of containers, for what events did not tell. */
  readonly refreshMs?: number
}

export interface DockerState extends SourceState {
  /** `docker` or `podman`; '' before one answered. */
  readonly runtime: string
  readonly version: string
  /** The path of the socket; '' before somebody answered there. */
  readonly endpoint: string
  /** Where Docker keeps its files; '' for Podman, and while it is not known. */
  readonly rootDir: string
  /** Those that the sink was told of and that are there, whatever their state. */
  readonly containers: number
}

interface Fault {
  readonly reason: string
  /** '': nothing is wrong. */
  readonly mend: string
}

/** Between two looks for a socket where there is none. */
const searchMs = 2_000
/** A daemon that was there for so long did not refuse us: its loss is news, and it may come back at once. */
const settledMs = 10_000
const nobody = { runtime: '', version: '', endpoint: '', rootDir: '' }
const noFault: Fault = { reason: '', mend: '' }

/** Follows the containers of Docker, or of Podman by its socket that speaks as Docker's does. */
export class DockerSource {
  private readonly options: DockerSourceOptions
  private readonly room: ByteRoom
  /** What the sink was told, over all sessions. */
  private readonly known = new Map<string, Container>()
  private readonly backoff = new Backoff({ initialMs: 200, maxMs: 10_000, multiplier: 2, jitter: 0.3 })
  private daemon = nobody
  private client: EngineClient | undefined
  private session: EngineSession | undefined
  private connected = false
  private fault = noFault
  private hasWarned = false
  private phase: 'new' | 'running' | 'stopped' = 'new'
  /** Ends the pause that runs. */
  private wake: () => void = () => undefined

  constructor(options: DockerSourceOptions) {
    this.options = options
    this.room = options.room ?? new ByteRoom()
  }

  /** Looks for a daemon from now on, and follows it. */
  start(): void {
    if (this.phase !== 'new') return
    this.phase = 'running'
    void this.run()
  }

  /** Ends everything. Nobody follows the containers any more, so they are told as gone. */
  stop(): void {
    this.phase = 'stopped'
    this.connected = false
    this.session?.close()
    this.client?.close()
    this.wake()
    for (const [id, container] of this.known) {
      this.room.give(entityBytes(container))
      this.options.sink.containerGone(id)
    }
    this.known.clear()
  }

  get state(): DockerState {
    const { reason, mend } = this.connected ? { reason: this.session?.fault ?? '', mend: '' } : this.fault
    return { connected: this.connected, reason, mend, ...this.daemon, containers: this.known.size }
  }

  /** The sink was told of this container, and will be when it goes. */
  knows(id: string): boolean {
    return this.known.has(id)
  }

  private async run(): Promise<void> {
    while (this.phase === 'running') {
      const { paths, ...none } = findSockets(this.options.endpoint, this.options.rootfs ?? '/')
      let fault = this.wasLost ? { ...none, mend: startAgain } : none
      for (const path of paths) {
        const end = await this.follow(path)
        // Of several sockets that do not answer, the first was meant.
        if (end.wasReached || path === paths[0]) ({ fault } = end)
        if (end.wasReached || this.phase !== 'running') break
      }
      if (this.phase !== 'running') return
      this.fail(fault)
      await this.pause(paths.length === 0 ? searchMs : this.backoff.next())
    }
  }

  /** A daemon was there, and left containers. */
  private get wasLost(): boolean {
    return this.daemon !== nobody && this.known.size > 0
  }

  /** Follows one daemon until it is lost. */
  private async follow(endpoint: string): Promise<{ readonly wasReached: boolean; readonly fault: Fault }> {
    const client = new EngineClient(endpoint)
    this.client = client
    let reachedMs = Number.POSITIVE_INFINITY
    try {
      const engine = await meetEngine(client)
      const { known, room } = this
      const { sink, refreshMs = 60_000 } = this.options
      this.session = new EngineSession({ client, engine, known, room, sink, refreshMs })
      return await this.session.run(() => {
        if (this.connected) return
        reachedMs = performance.now()
        this.reached(endpoint, client, engine)
      })
    } catch (error) {
      const wasReached = this.connected
      if (performance.now() - reachedMs >= settledMs) {
        this.backoff.reset()
        this.hasWarned = false
      }
      return { wasReached, fault: faultOf(endpoint, error, wasReached) }
    } finally {
      this.connected = false
      client.close()
    }
  }

  private reached(endpoint: string, client: EngineClient, engine: Engine): void {
    const { runtime, version } = engine
    if (this.daemon === nobody) this.options.log.info('follows containers', { runtime, version, endpoint })
    this.connected = true
    this.fault = noFault
    // The root of Docker is asked for at each connection, and stays until it is told.
    const rootDir = runtime === this.daemon.runtime ? this.daemon.rootDir : ''
    this.daemon = { runtime, version, endpoint, rootDir }
    void dockerRoot(client, engine).then(root => {
      if (this.client === client && root !== '') this.daemon = { ...this.daemon, rootDir: root }
    })
  }

  private fail(fault: Fault): void {
    this.fault = fault
    if (fault.mend === '' || this.hasWarned) return
    this.hasWarned = true
    this.options.log.warn('cannot follow containers', { reason: fault.reason, mend: fault.mend })
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms).unref()
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

const startAgain = 'start Docker or Podman again; what is known of their containers is kept until then'

function faultOf(endpoint: string, error: unknown, wasReached: boolean): Fault {
  const { code, message } = error instanceof EngineError ? error : new EngineError(errorText(error))
  if (code === 'EACCES' || code === 'EPERM')
    return {
      reason: `this process may not open ${endpoint} (${code})`,
      mend: 'run svc as root, or add its user to the group of the socket (docker)',
    }
  if (code === 'ECONNREFUSED' || code === 'ENOENT')
    return {
      reason: `nobody listens at ${endpoint} (${code})`,
      mend: wasReached ? startAgain : 'start Docker or Podman, or delete the socket that it left behind',
    }
  if (wasReached) return { reason: `the daemon at ${endpoint} was lost: ${message}`, mend: startAgain }
  return {
    reason: `the daemon at ${endpoint} does not answer as Docker does: ${message}`,
    mend: 'see whether "docker ps" or "podman ps" answers on this host, and correct agent.discovery.docker.endpoint',
  }
}
