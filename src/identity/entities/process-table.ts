import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import { ThrottledWork } from '../../foundation/lib/throttled-work.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { type ContainerPlace, noPlace } from './container-place.ts'
import type { AttributeLoss } from './declared-attributes.ts'
import { type EndListener, KnownProcesses, type Process, serve } from './known-processes.ts'
import { LastResources } from './last-resources.ts'
import { ListenedPorts } from './listened-ports.ts'
import { allListeners, listeningPorts } from './listening-ports.ts'
import { unknownStart } from './process-files.ts'
import { LastNews, placeOfNews, sameStart } from './process-news.ts'
import { type FoundProcess, ProcessReader } from './process-reader.ts'
import { processResource, type ResourceOptions } from './process-resource.ts'
import { describedProcess, type ProcessView } from './process-view.ts'
import { sameAttributes } from './same-attributes.ts'
import { judge, type SelectionRules, type Verdict } from './selection.ts'
import { type Service, ServiceList } from './service-list.ts'
import type { Surroundings } from './surroundings.ts'

export type { ProcessView } from './process-view.ts'

export interface ProcessTableOptions extends ResourceOptions {
  /** Mount point of the host's /proc. */
  readonly procDir?: string
  /** Surroundings of a place; the same object until they change. */
  readonly surroundings?: (place: ContainerPlace) => Surroundings
  readonly maxProcesses?: number
  /** Attributes that processes may set beside those of service and deployment (`mayDeclare`). */
  readonly allowedKeys?: readonly string[]
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/**
 * Identifies the observed processes. Each has one resource while it runs one program and its surroundings do not
 * change. A process is read from /proc when first seen, and checked again after a second, because its number may have
 * been reused.
 */
export class ProcessTable {
  /**
   * Passes pending kernel events to `noticed`. Called for each process that ended before it was read, as it may have
   * started and ended since the last call. Without events it costs one check of the ring.
   */
  catchUp: (() => void) | undefined
  readonly #processes: KnownProcesses
  readonly #reader: ProcessReader
  readonly #procDir: string
  readonly #ports: ListenedPorts
  readonly #options: ProcessTableOptions
  readonly #now: () => number
  readonly #news = new LastNews()
  #proc = true
  readonly #resources = new LastResources()
  #rules: SelectionRules = { instrument: [], exclude: [] }
  #lookedMs = Number.NEGATIVE_INFINITY
  readonly #live: ThrottledWork<Service[]>
  #looking: Promise<void> | undefined

  constructor(options: ProcessTableOptions) {
    this.#options = options
    this.#procDir = options.procDir ?? '/proc'
    this.#now = options.now ?? (() => performance.now())
    this.#ports = new ListenedPorts(this.#procDir)
    this.#live = new ThrottledWork(() => this.#findServices(), {
      leastMs: checkEveryMs,
      factor: 10,
      now: this.#now,
    })
    this.#reader = new ProcessReader(this.#procDir, this.#now, options.allowedKeys ?? [])
    this.#processes = new KnownProcesses(options.maxProcesses ?? 4_096)
  }

  /**
   * For process numbers from another PID namespace: /proc is not read, and kernel events are the only source. Processes
   * then leave the table only when it is full.
   */
  withoutProc(): void {
    this.#proc = false
  }

  /** Host and agent attributes of its resources. */
  get about(): ResourceOptions {
    return this.#options
  }

  /** Sets the selection rules. */
  select(rules: SelectionRules): void {
    this.#rules = rules
    for (const [, process] of this.#processes.all()) process.verdict = undefined
  }

  /**
   * Why telemetry of a process is suppressed: `not_selected`, `instrumented` if it exports its own spans, or '' if it
   * is observed.
   */
  hidden(pid: number, comm: string): '' | 'not_selected' | 'instrumented' {
    const process = this.#process(pid, comm)
    process.called = true
    if (!this.#verdictOf(pid, process).observed) return 'not_selected'
    return this.#now() - process.exportedMs < instrumentedMs ? 'instrumented' : ''
  }

  /** Whether a process is observed at all. Unlike `hidden`, this does not record a call. */
  selected(pid: number, comm: string): boolean {
    return this.#verdictOf(pid, this.#process(pid, comm)).observed
  }

  /** The process exported its own spans. */
  exported(pid: number, comm: string): void {
    this.#process(pid, comm).exportedMs = this.#now()
  }

  /** Handles a kernel event, which may invalidate the known state of the process. */
  noticed(news: ProcessNews): void {
    const now = this.#now()
    const { pid, start, kind } = news
    this.#news.add(news, now)
    this.#processes.leave(now - lingerMs)
    if (kind === 'exec') this.#processes.forget(pid)
    const known = this.#processes.get(pid)
    if (known === undefined) return
    const isSame = sameStart(known.identity.start, start)
    // Outdated event of a previous process with this number.
    if (!isSame && start < known.identity.start) return
    if (isSame && kind === 'exit') {
      this.#processes.ending(known, now)
      this.#placeByNews(known, news)
    } else if (isSame) this.#check(pid, news.comm, known, now, true)
    else {
      this.#processes.delete(pid)
      this.#processes.end(known.resource)
    }
  }

  /**
   * View of a process and the reason why it is observed or not; undefined if there is no such process. Does not add the
   * process to the table. Yields while it reads many descriptors.
   */
  async explain(pid: number): Promise<ProcessView | undefined> {
    const listening = await listeningPorts(this.#procDir, pid)
    const process = this.#peek(pid)
    if (process === undefined) return undefined
    const verdict = this.#verdictOf(pid, process, listening)
    const instrumented = this.#now() - process.exportedMs < instrumentedMs
    return {
      ...describedProcess(process.identity, process.resource, this.#reader.files.facts(pid).args),
      listening,
      served: [...process.ports],
      seen: process.called,
      selection: instrumented ? { observed: false, cause: 'instrumented' } : verdict,
    }
  }

  /** Whether there is no process with this number; false if unknown. */
  isGone(pid: number): boolean {
    return this.#proc && this.#reader.files.start(pid) === unknownStart
  }

  /** Numbers of at most `most` known processes. */
  pids(most: number): number[] {
    return Array.from(this.#processes.all(), ([pid]) => pid).slice(0, most)
  }

  /** Number of known processes. */
  get size(): number {
    return this.#processes.size
  }

  /** Approximate memory of the known processes. */
  get bytes(): number {
    return this.#processes.bytes
  }

  /** Attributes of process environments that were dropped or released since the start, by reason. */
  get lostAttributes(): Readonly<Record<AttributeLoss | 'memory', number>> {
    return { ...this.#reader.environments.lost, memory: this.#processes.shed }
  }

  /** Failed attempts to read command lines and environments since the start, by reason. */
  get unreadStrings(): Readonly<Record<string, number>> {
    return this.#reader.files.strings.lost
  }

  /** Processes evicted from the table since the start. */
  get losses(): ShareLosses {
    return this.#processes.losses
  }

  /** Frees about `bytes` of detail from process environments; returns the amount. */
  shed(bytes: number): number {
    return this.#processes.giveBack(bytes, (process, pid) => this.#describeAgain(process, pid))
  }

  /**
   * Resource of a process; `comm` is its name if it ended before it was read. `servedPort`: port where it just
   * responded; 0 for none.
   */
  resource(pid: number, comm: string, servedPort = 0): Resource {
    const process = this.#process(pid, comm)
    if (servedPort !== process.servedPort && servedPort !== 0) serve(process, servedPort)
    return process.resource
  }

  /**
   * Resource of a known process, without reading /proc. With `start`, in clock ticks since boot, only if it matches.
   */
  known(pid: number, start?: number): Resource | undefined {
    const process = this.#processes.get(pid)
    const isMeant = start === undefined || sameStart(process?.identity.start ?? unknownStart, start)
    return isMeant ? process?.resource : undefined
  }

  /** Resource of a running process; undefined if there is none with this number. */
  running(pid: number): Resource | undefined {
    const known = this.#processes.get(pid)
    if (known !== undefined) return this.#process(pid, known.comm).resource
    const found = this.#proc ? this.#reader.read(pid) : undefined
    if (found === undefined) return undefined
    const process = this.#described(found, this.#now())
    this.#processes.set(pid, process)
    return process.resource
  }

  /** Calls `listener` for each resource whose process ended, was replaced or evicted, as part of any lookup. */
  onEnd(listener: EndListener): void {
    this.#processes.onEnd(listener)
  }

  /** Checks every known process (about 15 µs each), in turns, and removes those that ended. */
  look(): Promise<void> {
    this.#looking ??= this.#lookInTurns().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Running services with observed calls, and the ports where they responded. */
  async services(): Promise<Service[]> {
    await this.#lookAgain()
    const list = new ServiceList()
    for (const [, process] of this.#processes.all())
      if (this.#runs(process)) list.add(process.resource, process.ports)
    return list.services()
  }

  /**
   * Services of this host: all processes that listen on TCP ports, and those with outgoing calls. Runs at most once per
   * second, after a pause of ten times its duration, and once at a time; yields in between.
   */
  liveServices(): Promise<Service[]> {
    return this.#live.get()
  }

  async #findServices(): Promise<Service[]> {
    const listeners = this.#proc ? await allListeners(this.#procDir) : new Map<number, readonly number[]>()
    await this.#lookAgain()
    const list = new ServiceList()
    for (const [pid, process] of this.#processes.all()) {
      const { called, ports } = process
      if ((called || ports.length > 0) && !listeners.has(pid) && this.#runs(process))
        list.add(process.resource, [])
    }
    const turn = new Turn(workMs)
    for (const [pid, ports] of listeners) {
      const process = this.#peek(pid)
      if (process !== undefined) list.add(process.resource, ports)
      if (turn.isOver) await turn.next()
    }
    return list.services()
  }

  /** Whether it is not known to have ended; a process that ended before it was read is not running. */
  #runs({ identity, endedMs }: Process): boolean {
    return endedMs === undefined && !(this.#proc && identity.start === unknownStart)
  }

  #process(pid: number, comm: string): Process {
    const now = this.#now()
    const process = this.#processes.get(pid)
    if (process === undefined) return this.#read(pid, comm, now)
    return now - process.checkedMs >= checkEveryMs ? this.#check(pid, comm, process, now, false) : process
  }

  /** Does not add the process to the table; undefined if there is none. */
  #peek(pid: number): Process | undefined {
    if (!this.#proc) return undefined
    const now = this.#now()
    const known = this.#processes.get(pid)
    if (known === undefined) {
      const found = this.#reader.read(pid)
      return found === undefined ? undefined : this.#described(found, now)
    }
    const { files } = this.#reader
    if (files.start(pid) === unknownStart) return undefined
    return this.#check(pid, files.comm, known, now, false)
  }

  /** A verdict expires: the process may start to listen on a port. */
  #verdictOf(pid: number, process: Process, listening?: readonly number[]): Verdict {
    const { verdict, judgedMs } = process
    if (verdict !== undefined && this.#now() - judgedMs < judgeEveryMs) return verdict
    return this.#judge(pid, process, listening)
  }

  /** Apart from the above, which runs for each span and must not allocate the scope of these closures. */
  #judge(pid: number, process: Process, listening: readonly number[] | undefined): Verdict {
    const now = this.#now()
    process.judgedMs = now
    const { resource, identity, surroundings } = process
    const reset = () => {
      process.verdict = undefined
    }
    process.verdict = judge(this.#rules, {
      name: String(resource.attributes.get('service.name')),
      executable: identity.executable,
      listening: () => [...process.ports, ...(listening ?? this.#ports.of(process, pid, now, reset))],
      attribute: key => String(resource.attributes.get(key) ?? ''),
      podLabel: key => surroundings?.podLabels.get(key),
    })
    return process.verdict
  }

  /** At most once per second. */
  async #lookAgain(): Promise<void> {
    if (this.#now() - this.#lookedMs >= checkEveryMs) await this.look()
  }

  async #lookInTurns(): Promise<void> {
    this.#lookedMs = this.#now()
    const turn = new Turn(workMs)
    this.#processes.leave(this.#now() - lingerMs)
    for (const [pid, process] of this.#processes.all()) {
      const { endedMs, identity } = process
      if (endedMs === undefined && this.#proc) {
        const start = this.#reader.files.start(pid)
        if (start !== identity.start || start === unknownStart)
          this.#processes.markEnded(process, this.#now())
      }
      if (turn.isOver) await turn.next()
    }
  }

  /** Checks a known process. `executed`: it runs another program. */
  #check(pid: number, comm: string, known: Process, now: number, executed: boolean): Process {
    known.checkedMs = now
    if (known.endedMs !== undefined) {
      // A fork without exec causes no event.
      const start = this.#proc ? this.#reader.files.start(pid) : unknownStart
      const isReused = start !== unknownStart && !sameStart(start, known.identity.start)
      if (isReused || now - known.endedMs >= lateMs) return this.#replaced(pid, comm, known, now)
      this.#renew(known)
      return known
    }
    const { files } = this.#reader
    const start = this.#proc ? files.start(pid) : unknownStart
    if (start === unknownStart) {
      if (executed) return this.#replaced(pid, comm, known, now)
      // The process is gone; remaining telemetry is from before its end.
      this.#renew(known)
      return known
    }
    if (start !== known.identity.start) return this.#replaced(pid, comm, known, now)
    if (executed || files.comm !== known.comm || known.identity.isUnread) {
      const { digest, executable, isUnread } = files.facts(pid)
      // If it only changed its name, the known data is better than what is readable now.
      const isKept = isUnread && !executed && executable.startsWith(known.identity.executable)
      if (!isKept && digest !== known.identity.digest) return this.#replaced(pid, comm, known, now)
      // A thread or program renamed itself.
      known.comm = files.comm
    }
    this.#placeAgain(pid, known, now)
    this.#renew(known)
    return known
  }

  #replaced(pid: number, comm: string, known: Process, now: number): Process {
    const process = this.#read(pid, comm, now)
    if (process.resource !== known.resource) this.#processes.end(known.resource)
    return process
  }

  /** A process may be moved to its control group shortly after its start; later that is rare. */
  #placeAgain(pid: number, known: Process, now: number): void {
    const isYoung = now - known.madeMs < youngMs
    if (!isYoung && now - known.placedMs < placeEveryMs) return
    known.placedMs = now
    const place = this.#reader.place(pid) ?? known.place
    if (place === known.place) return
    known.place = place
    // Containers have their own users, so the account changes too.
    const account = this.#reader.accountOf(known.identity.user)
    if (place.id !== '') known.identity = { ...known.identity, owner: '', account }
  }

  /** A process first read while it was exiting gets its place from the kernel event. */
  #placeByNews(known: Process, news: ProcessNews): void {
    const place = placeOfNews(news)
    if (known.place !== noPlace || place === noPlace) return
    known.place = place
    known.identity = { ...known.identity, owner: '' }
    this.#renew(known)
  }

  /** Its surroundings may have changed. */
  #renew(known: Process): void {
    const surroundings = this.#options.surroundings?.(known.place)
    if (surroundings === known.surroundings) return
    known.surroundings = surroundings
    this.#describeAgain(known, known.identity.pid)
  }

  #describeAgain(known: Process, pid: number): void {
    known.verdict = undefined
    const resource = processResource(known.identity, known.surroundings, this.#options)
    if (!sameAttributes(resource.attributes, known.resource.attributes)) {
      const before = known.resource
      known.resource = this.#resources.same(pid, resource)
      this.#processes.end(before, known.resource)
    }
    this.#processes.changed(pid, known)
  }

  #read(pid: number, comm: string, now: number): Process {
    const process = this.#made(pid, comm, now)
    this.#processes.set(pid, process)
    return process
  }

  #made(pid: number, comm: string, now: number): Process {
    const found = this.#proc ? this.#reader.read(pid) : undefined
    if (found?.place !== undefined) return this.#described(found, now)
    // Also if there is an event: it may belong to a previous process with this number.
    this.catchUp?.()
    const news = this.#news.of(pid, now)
    if (found !== undefined) return this.#described(this.#reader.ending(found, news), now)
    const departed = this.#departedOf(pid, comm, news)
    if (departed !== undefined) return departed
    const process = this.#described(this.#reader.gone(pid, comm, news), now)
    if (news?.kind === 'exit') process.endedMs = now
    return process
  }

  /**
   * Data read while it ran is better than kernel events. A process that ended before it was read also keeps its
   * resource: two equal resources would have separate series, which receivers cannot distinguish.
   */
  #departedOf(pid: number, comm: string, news: ProcessNews | undefined): Process | undefined {
    const now = this.#now()
    const process = this.#processes.departed(pid)
    if (process?.departedMs === undefined || now - process.departedMs >= lateMs) return undefined
    if (process.identity.start === unknownStart && process.comm !== comm) return undefined
    if (news !== undefined && !sameStart(news.start, process.identity.start)) return undefined
    this.#processes.forget(pid)
    process.endedMs = now
    process.checkedMs = now
    return process
  }

  #described({ identity, place = noPlace }: FoundProcess, now: number): Process {
    const surroundings = this.#options.surroundings?.(place)
    return {
      identity,
      place,
      surroundings,
      resource: this.#resources.same(identity.pid, processResource(identity, surroundings, this.#options)),
      holder: identity.account,
      bytes: 0,
      comm: identity.comm,
      madeMs: now,
      placedMs: now,
      checkedMs: now,
      endedMs: undefined,
      departedMs: undefined,
      servedPort: 0,
      ports: [],
      verdict: undefined,
      judgedMs: 0,
      exportedMs: Number.NEGATIVE_INFINITY,
      called: false,
    }
  }
}

/** Minimum interval of checks of a process that is looked up. */
const checkEveryMs = 1_000
/** Time after the first sight in which the control group is read at each check, and the interval later. */
const youngMs = 5_000
const placeEveryMs = 30_000
/** Delay for telemetry in flight when a process ends. */
const lingerMs = 5_000
/** Counters, such as bytes of connections, arrive some metric intervals later. */
const lateMs = 60_000
/** Milliseconds of work before yielding. */
const workMs = 2
/** Lifetime of a verdict, as ports may change. */
const judgeEveryMs = 10_000
/** Time for which an export of its own spans marks a process as instrumented: several export intervals of SDKs. */
const instrumentedMs = 600_000
