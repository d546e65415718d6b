import { Backoff } from '../../foundation/lib/backoff.ts'
import { ByteRoom } from '../../foundation/lib/byte-room.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import { untilTick } from '../../foundation/lib/shared-ticks.ts'
import type { Container, EntitySink, SourceState } from '../../foundation/model/entity.ts'
import { entityBytes } from '../../foundation/model/entity-bytes.ts'

/** Receiver of containers. */
export type ContainerSink = Pick<EntitySink, 'container' | 'containerGone'>

export interface RuntimeSourceOptions {
  readonly sink: ContainerSink
  /** Memory for known containers; without it there is no limit in bytes. */
  readonly room?: ByteRoom
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Mount point of the host's root file system. */
  readonly rootfs?: string
  /** Interval of full lists, in milliseconds, for changes without an event. */
  readonly refreshMs?: number
}

/** A daemon that responded. */
export interface Daemon {
  /** `docker`, `podman` or `containerd`. */
  readonly runtime: string
  readonly version: string
  /** Its data directory, if requested; '' while unknown. */
  readonly rootDir: string
}

export interface RuntimeState extends SourceState, Daemon {
  /** Socket path or address; '' before a daemon responded. */
  readonly endpoint: string
  /** Number of containers reported to the sink that still exist, in any state. */
  readonly containers: number
}

export interface Fault {
  readonly reason: string
  /** '': no fault. */
  readonly hint: string
}

/** Address of a possible daemon. */
export interface Place {
  /** Name in logs and documents. */
  readonly name: string
  /** Configured by the user: a fault of it is reported even while another daemon responds. */
  readonly isMeant: boolean
}

/** Addresses to try. The fault is that of the configured address, or the reason why there is none. */
export interface FoundPlaces<P extends Place> extends Fault {
  readonly places: readonly P[]
}

/** Options of a session. */
export interface SessionOptions {
  /** Containers reported to the sink; kept across sessions. */
  readonly known: Map<string, Container>
  readonly room: ByteRoom
  readonly sink: ContainerSink
  readonly refreshMs: number
}

/** Follows the containers of one daemon over one stream of events. */
export interface RuntimeSession {
  /** Reason why some containers are not reported; '' if all are. */
  readonly fault: string
  /** Calls `listed` once the containers are known, and again at each new list. Rejects when the connection is lost. */
  run(listed: (daemon: Daemon) => void): Promise<never>
  /** Stops the session and all reports to the sink. */
  close(): void
}

/** Texts for faults of one kind of daemon. */
export interface FaultWords {
  denied(): Fault
  /** Hint if nothing listens. */
  readonly absent: string
  /** Name of the daemon in messages about a lost connection. */
  readonly daemon: string
  readonly startAgain: string
  /** Fault if another program responds. */
  readonly strange: Fault
}

/** Fault of a place from the system's error code, '' if there is none, and the error text. */
export function faultOf(
  name: string,
  code: string,
  text: string,
  wasReached: boolean,
  words: FaultWords,
): Fault {
  if (code === 'EACCES' || code === 'EPERM') return words.denied()
  const { startAgain } = words
  if (code === 'ECONNREFUSED' || code === 'ENOENT')
    return { reason: `nothing listens on ${name} (${code})`, hint: wasReached ? startAgain : words.absent }
  if (wasReached) return { reason: `lost ${words.daemon} at ${name}: ${text}`, hint: startAgain }
  return words.strange
}

/** Properties of one kind of daemon. */
export interface Runtime<P extends Place> {
  find(): FoundPlaces<P>
  open(place: P, options: SessionOptions): RuntimeSession
  faultOf(place: P, error: unknown, wasReached: boolean): Fault
  /** Hint for a lost daemon with known containers. */
  readonly startAgain: string
}

/** Interval of searches for a socket, in milliseconds, while there is none. */
const searchMs = 2_000
/** A connection of this length, in milliseconds, worked: its loss is reported, and the backoff starts again. */
const settledMs = 10_000
const noDaemon = { runtime: '', version: '', endpoint: '', rootDir: '' }
const noFault: Fault = { reason: '', hint: '' }

/** Reports the containers of the first daemon of its kind that responds, until stopped. */
export class RuntimeSource<P extends Place> {
  readonly #runtime: Runtime<P>
  readonly #options: RuntimeSourceOptions
  readonly #room: ByteRoom
  /** Containers reported to the sink, over all sessions. */
  readonly #known = new Map<string, Container>()
  readonly #backoff = new Backoff({ initialMs: 200, maxMs: 10_000, multiplier: 2, jitter: 0.3 })
  #daemon = noDaemon
  #session: RuntimeSession | undefined
  #connected = false
  #fault = noFault
  /** Fault of the configured address, while another daemon responds. */
  #aside = noFault
  #hasWarned = false
  #phase: 'new' | 'running' | 'stopped' = 'new'
  /** Ends the current pause. */
  #wake: () => void = () => undefined

  constructor(runtime: Runtime<P>, options: RuntimeSourceOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#room = options.room ?? new ByteRoom()
  }

  /** Starts to search for a daemon and to follow it. */
  start(): void {
    if (this.#phase !== 'new') return
    this.#phase = 'running'
    void this.#run()
  }

  /** Stops, and reports all containers as gone. */
  stop(): void {
    this.#phase = 'stopped'
    this.#connected = false
    this.#session?.close()
    this.#wake()
    for (const [id, container] of this.#known) {
      this.#room.give(entityBytes(container))
      this.#options.sink.containerGone(id)
    }
    this.#known.clear()
  }

  get state(): RuntimeState {
    const { reason, hint } = this.#connected ? this.#partFault : this.#fault
    return { connected: this.#connected, reason, hint, ...this.#daemon, containers: this.#known.size }
  }

  /** Whether this container was reported to the sink. */
  knows(id: string): boolean {
    return this.#known.has(id)
  }

  get #partFault(): Fault {
    const reason = this.#session?.fault ?? ''
    return reason === '' ? this.#aside : { reason, hint: '' }
  }

  async #run(): Promise<void> {
    while (this.#phase === 'running') {
      const { places, ...found } = this.#runtime.find()
      this.#aside = found.hint === '' ? noFault : found
      let fault: Fault | undefined = found.hint === '' ? undefined : found
      for (const place of places) {
        const end = await this.#follow(place)
        if (place.isMeant && !end.wasReached) this.#aside = end.fault
        // If several do not respond, the fault of the first is reported.
        fault = end.wasReached ? end.fault : (fault ?? end.fault)
        if (end.wasReached || this.#phase !== 'running') break
      }
      if (this.#phase !== 'running') return
      const isLost = places.length === 0 && this.#wasLost
      this.#fail(isLost ? { ...found, hint: this.#runtime.startAgain } : (fault ?? found))
      await this.#pause(places.length === 0 ? untilTick(searchMs) : this.#backoff.next())
    }
  }

  /** Whether a daemon with containers was lost. */
  get #wasLost(): boolean {
    return this.#daemon !== noDaemon && this.#known.size > 0
  }

  /** Follows one daemon until it is lost. */
  async #follow(place: P): Promise<{ readonly wasReached: boolean; readonly fault: Fault }> {
    const known = this.#known
    const room = this.#room
    const { sink, refreshMs = 60_000 } = this.#options
    const session = this.#runtime.open(place, { known, room, sink, refreshMs })
    this.#session = session
    let reachedMs = Number.POSITIVE_INFINITY
    let isOver = false
    try {
      return await session.run(daemon => {
        if (isOver || this.#phase !== 'running') return
        if (!this.#connected) reachedMs = performance.now()
        this.#reached(place, daemon)
      })
    } catch (error) {
      const wasReached = this.#connected
      if (performance.now() - reachedMs >= settledMs) {
        this.#backoff.reset()
        this.#hasWarned = false
      }
      return { wasReached, fault: this.#runtime.faultOf(place, error, wasReached) }
    } finally {
      isOver = true
      this.#connected = false
      session.close()
    }
  }

  #reached({ name: endpoint }: P, { runtime, version, rootDir }: Daemon): void {
    const { log } = this.#options
    if (this.#daemon === noDaemon) {
      log.info('connected to the container runtime', { runtime, version, endpoint })
      if (this.#aside.hint !== '')
        log.warn('the configured endpoint is not available; following another runtime', { ...this.#aside })
    }
    this.#connected = true
    this.#fault = noFault
    // Requested at each connection; the old value is kept until the answer comes.
    const root = rootDir || (runtime === this.#daemon.runtime ? this.#daemon.rootDir : '')
    this.#daemon = { runtime, version, endpoint, rootDir: root }
  }

  #fail(fault: Fault): void {
    this.#fault = fault
    if (fault.hint === '' || this.#hasWarned) return
    this.#hasWarned = true
    this.#options.log.warn('cannot read containers', { reason: fault.reason, hint: fault.hint })
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms).unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
