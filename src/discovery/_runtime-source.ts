import { Backoff } from '../lib/backoff.ts'
import { ByteRoom } from '../lib/byte-room.ts'
import type { Logger } from '../lib/logger.ts'
import type { Container, EntitySink, SourceState } from '../model/entity.ts'
import { entityBytes } from '../model/entity-bytes.ts'

/** What takes containers. */
export type ContainerSink = Pick<EntitySink, 'container' | 'containerGone'>

export interface RuntimeSourceOptions {
  readonly sink: ContainerSink
  /** For what is known; without it there is no bound in bytes. */
  readonly room?: ByteRoom
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Where the host's root is mounted. */
  readonly rootfs?: string
  /** Between two looks at the list of containers, for what events did not tell. */
  readonly refreshMs?: number
}

/** Who answers. */
export interface Daemon {
  /** `docker`, `podman` or `containerd`. */
  readonly runtime: string
  readonly version: string
  /** Where it keeps its files, where that is asked for; '' while it is not known. */
  readonly rootDir: string
}

export interface RuntimeState extends SourceState, Daemon {
  /** Where it answers: the path of a socket, or an address; '' before somebody did. */
  readonly endpoint: string
  /** Those that the sink was told of and that are there, whatever their state. */
  readonly containers: number
}

export interface Fault {
  readonly reason: string
  /** '': nothing is wrong. */
  readonly hint: string
}

/** Where a daemon may be asked. */
export interface Place {
  /** For people. */
  readonly name: string
  /** Somebody named it: that it does not answer is told also where another does. */
  readonly isMeant: boolean
}

/** The places to try. The fault is that of the place that somebody named, or why there is none. */
export interface FoundPlaces<P extends Place> extends Fault {
  readonly places: readonly P[]
}

/** What a session has for all that it finds. */
export interface SessionOptions {
  /** What the sink was told; outlives the session. */
  readonly known: Map<string, Container>
  readonly room: ByteRoom
  readonly sink: ContainerSink
  readonly refreshMs: number
}

/** Follows the containers of one daemon over one stream of events. */
export interface RuntimeSession {
  /** Why not all is told; '' while it is. */
  readonly fault: string
  /** Calls `listed` as soon as the containers are known, and again when more is. Rejects when the daemon is lost. */
  run(listed: (daemon: Daemon) => void): Promise<never>
  /** Ends everything: from now on the sink is told nothing. */
  close(): void
}

/** What one kind of daemon differs in. */
export interface Runtime<P extends Place> {
  find(): FoundPlaces<P>
  open(place: P, options: SessionOptions): RuntimeSession
  faultOf(place: P, error: unknown, wasReached: boolean): Fault
  /** The hint where a daemon left containers behind. */
  readonly startAgain: string
}

/** Between two looks for a socket where there is none. */
const searchMs = 2_000
/** A daemon that was there for so long did not refuse us: its loss is news, and it may come back at once. */
const settledMs = 10_000
const nobody = { runtime: '', version: '', endpoint: '', rootDir: '' }
const noFault: Fault = { reason: '', hint: '' }

/** Follows the containers of whoever answers first of one kind of daemon, for as long as it is wanted. */
export class RuntimeSource<P extends Place> {
  private readonly runtime: Runtime<P>
  private readonly options: RuntimeSourceOptions
  private readonly room: ByteRoom
  /** What the sink was told, over all sessions. */
  private readonly known = new Map<string, Container>()
  private readonly backoff = new Backoff({ initialMs: 200, maxMs: 10_000, multiplier: 2, jitter: 0.3 })
  private daemon = nobody
  private session: RuntimeSession | undefined
  private connected = false
  private fault = noFault
  /** Of the place that somebody named, while another answers. */
  private aside = noFault
  private hasWarned = false
  private phase: 'new' | 'running' | 'stopped' = 'new'
  /** Ends the pause that runs. */
  private wake: () => void = () => undefined

  constructor(runtime: Runtime<P>, options: RuntimeSourceOptions) {
    this.runtime = runtime
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
    this.wake()
    for (const [id, container] of this.known) {
      this.room.give(entityBytes(container))
      this.options.sink.containerGone(id)
    }
    this.known.clear()
  }

  get state(): RuntimeState {
    const { reason, hint } = this.connected ? this.partFault : this.fault
    return { connected: this.connected, reason, hint, ...this.daemon, containers: this.known.size }
  }

  /** The sink was told of this container, and will be when it goes. */
  knows(id: string): boolean {
    return this.known.has(id)
  }

  private get partFault(): Fault {
    const reason = this.session?.fault ?? ''
    return reason === '' ? this.aside : { reason, hint: '' }
  }

  private async run(): Promise<void> {
    while (this.phase === 'running') {
      const { places, ...found } = this.runtime.find()
      this.aside = found.hint === '' ? noFault : found
      let fault: Fault | undefined = found.hint === '' ? undefined : found
      for (const place of places) {
        const end = await this.follow(place)
        if (place.isMeant && !end.wasReached) this.aside = end.fault
        // Of several that do not answer, the first was meant.
        fault = end.wasReached ? end.fault : (fault ?? end.fault)
        if (end.wasReached || this.phase !== 'running') break
      }
      if (this.phase !== 'running') return
      const isLost = places.length === 0 && this.wasLost
      this.fail(isLost ? { ...found, hint: this.runtime.startAgain } : (fault ?? found))
      await this.pause(places.length === 0 ? searchMs : this.backoff.next())
    }
  }

  /** A daemon was there, and left containers. */
  private get wasLost(): boolean {
    return this.daemon !== nobody && this.known.size > 0
  }

  /** Follows one daemon until it is lost. */
  private async follow(place: P): Promise<{ readonly wasReached: boolean; readonly fault: Fault }> {
    const { known, room } = this
    const { sink, refreshMs = 60_000 } = this.options
    const session = this.runtime.open(place, { known, room, sink, refreshMs })
    this.session = session
    let reachedMs = Number.POSITIVE_INFINITY
    let isOver = false
    try {
      return await session.run(daemon => {
        if (isOver || this.phase !== 'running') return
        if (!this.connected) reachedMs = performance.now()
        this.reached(place, daemon)
      })
    } catch (error) {
      const wasReached = this.connected
      if (performance.now() - reachedMs >= settledMs) {
        this.backoff.reset()
        this.hasWarned = false
      }
      return { wasReached, fault: this.runtime.faultOf(place, error, wasReached) }
    } finally {
      isOver = true
      this.connected = false
      session.close()
    }
  }

  private reached({ name: endpoint }: P, { runtime, version, rootDir }: Daemon): void {
    const { log } = this.options
    if (this.daemon === nobody) {
      log.info('connected to the container runtime', { runtime, version, endpoint })
      if (this.aside.hint !== '')
        log.warn('the configured endpoint is not available; following another runtime', { ...this.aside })
    }
    this.connected = true
    this.fault = noFault
    // It is asked for at each connection, and stays until it is told.
    const root = rootDir || (runtime === this.daemon.runtime ? this.daemon.rootDir : '')
    this.daemon = { runtime, version, endpoint, rootDir: root }
  }

  private fail(fault: Fault): void {
    this.fault = fault
    if (fault.hint === '' || this.hasWarned) return
    this.hasWarned = true
    this.options.log.warn('cannot read containers', { reason: fault.reason, hint: fault.hint })
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
