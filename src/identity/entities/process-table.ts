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
  /** Where the host's /proc is mounted. */
  readonly procDir?: string
  /** What surrounds a process that runs at a place; the same object while nothing of it changes. */
  readonly surroundings?: (place: ContainerPlace) => Surroundings
  readonly maxProcesses?: number
  /** What processes may name of themselves beside service and deployment (`mayDeclare`). */
  readonly allowedKeys?: readonly string[]
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/**
 * Knows who the observed processes are. Each process has one resource for as long as it runs one program and nothing
 * else is found out of what it runs in; it is read from /proc when the process is first seen, and looked at again when a
 * second has passed, because a number may by then belong to another process.
 */
export class ProcessTable {
  /**
   * Has what the kernel told of late handed to `noticed`: asked for wherever a process ended before anybody looked, as it
   * may have begun and ended since the last time. Without news it costs a look at the ring.
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
   * The numbers of processes are not those of /proc: from now on nothing is read there, and what the kernel tells is all
   * that is known of a process. They end when there are too many.
   */
  withoutProc(): void {
    this.#proc = false
  }

  /** Whom its resources are of, beside the processes. */
  get about(): ResourceOptions {
    return this.#options
  }

  /** Which processes are observed, from now on. */
  select(rules: SelectionRules): void {
    this.#rules = rules
    for (const [, process] of this.#processes.all()) process.verdict = undefined
  }

  /**
   * Why nothing is told of what a process does: `not_selected`, `instrumented` where it exports spans of its own, or ''
   * where it is observed.
   */
  hidden(pid: number, comm: string): '' | 'not_selected' | 'instrumented' {
    const process = this.#process(pid, comm)
    process.called = true
    if (!this.#verdictOf(pid, process).observed) return 'not_selected'
    return this.#now() - process.exportedMs < instrumentedMs ? 'instrumented' : ''
  }

  /** Whether a process is observed at all. Unlike `hidden` this does not say that a call of it was seen. */
  selected(pid: number, comm: string): boolean {
    return this.#verdictOf(pid, this.#process(pid, comm)).observed
  }

  /** A process has exported spans of its own. */
  exported(pid: number, comm: string): void {
    this.#process(pid, comm).exportedMs = this.#now()
  }

  /** The kernel has told of a process: what was known of it may no longer hold. */
  noticed(news: ProcessNews): void {
    const now = this.#now()
    const { pid, start, kind } = news
    this.#news.add(news, now)
    this.#processes.leave(now - lingerMs)
    if (kind === 'exec') this.#processes.forget(pid)
    const known = this.#processes.get(pid)
    if (known === undefined) return
    const isSame = sameStart(known.identity.start, start)
    // Old news, of who had the number before.
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
   * What is known of a process, and why it is observed or not; undefined where there is none with this number. Whoever
   * asks changes nothing: a process that did nothing does not become one of those that are known. Lets others work where
   * it has many descriptors.
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
      observed: verdict.observed && !instrumented,
      reason: instrumented ? 'it exports its own spans; svc reports only its metrics' : verdict.reason,
    }
  }

  /** Whether there is no process with this number; false where that cannot be known. */
  isGone(pid: number): boolean {
    return this.#proc && this.#reader.files.start(pid) === unknownStart
  }

  /** Numbers of processes that are known, at most so many. */
  pids(most: number): number[] {
    return Array.from(this.#processes.all(), ([pid]) => pid).slice(0, most)
  }

  /** How many processes are known. */
  get size(): number {
    return this.#processes.size
  }

  /** What is known of them takes so many bytes of memory, about. */
  get bytes(): number {
    return this.#processes.bytes
  }

  /** Attributes that processes named and that were not taken, or let go of, since the start, by why. */
  get lostAttributes(): Readonly<Record<AttributeLoss | 'memory', number>> {
    return { ...this.#reader.environments.lost, memory: this.#processes.shed }
  }

  /** Looks at processes whose command lines and environments could not be read, since the start, by why. */
  get unreadStrings(): Readonly<Record<string, number>> {
    return this.#reader.files.strings.lost
  }

  /** Processes that lost their places in the table, since the start. */
  get losses(): ShareLosses {
    return this.#processes.losses
  }

  /** Gives back about so many bytes of detail, what processes told of themselves; returns how many it did. */
  shed(bytes: number): number {
    return this.#processes.giveBack(bytes, (process, pid) => this.#describeAgain(process, pid))
  }

  /**
   * The resource of a process; `comm` names it if it ended before anybody looked. `servedPort` is where it has just
   * answered somebody, 0 for nowhere.
   */
  resource(pid: number, comm: string, servedPort = 0): Resource {
    const process = this.#process(pid, comm)
    if (servedPort !== process.servedPort && servedPort !== 0) serve(process, servedPort)
    return process.resource
  }

  /**
   * The resource of a process that is known already; nothing is read. With `start`, in clock ticks since boot, only where
   * that is the one that has the number.
   */
  known(pid: number, start?: number): Resource | undefined {
    const process = this.#processes.get(pid)
    const isMeant = start === undefined || sameStart(process?.identity.start ?? unknownStart, start)
    return isMeant ? process?.resource : undefined
  }

  /** The resource of a process that runs; undefined where there is none with this number. */
  running(pid: number): Resource | undefined {
    const known = this.#processes.get(pid)
    if (known !== undefined) return this.#process(pid, known.comm).resource
    const found = this.#proc ? this.#reader.read(pid) : undefined
    if (found === undefined) return undefined
    const process = this.#described(found, this.#now())
    this.#processes.set(pid, process)
    return process.resource
  }

  /** Has `listener` told of each resource whose process ended, was replaced or forgotten: wherever a process is asked for. */
  onEnd(listener: EndListener): void {
    this.#processes.onEnd(listener)
  }

  /** Looks at every process that is known (about 15 µs each), in turns, and lets go of those that ended. */
  look(): Promise<void> {
    this.#looking ??= this.#lookInTurns().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** The services that are running now and were observed at work, with the ports where they answered. */
  async services(): Promise<Service[]> {
    await this.#lookAgain()
    const list = new ServiceList()
    for (const [, process] of this.#processes.all())
      if (this.#runs(process)) list.add(process.resource, process.ports)
    return list.services()
  }

  /**
   * The services of this host: all processes that listen at TCP ports, with these, and those that were seen to call
   * others. Found at most once in a second and after ten times the time that it took, and once at a time; lets others
   * work meanwhile.
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

  /** Whether it has not ended, as far as is known; one that ended before anybody looked has. */
  #runs({ identity, endedMs }: Process): boolean {
    return endedMs === undefined && !(this.#proc && identity.start === unknownStart)
  }

  #process(pid: number, comm: string): Process {
    const now = this.#now()
    const process = this.#processes.get(pid)
    if (process === undefined) return this.#read(pid, comm, now)
    return now - process.checkedMs >= checkEveryMs ? this.#check(pid, comm, process, now, false) : process
  }

  /** Without making it one of those that are known; undefined where there is none. */
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

  /** What is decided of it holds for a while: it may begin to listen at a port. */
  #verdictOf(pid: number, process: Process, listening?: readonly number[]): Verdict {
    const now = this.#now()
    if (process.verdict === undefined || now - process.judgedMs >= judgeEveryMs) {
      process.judgedMs = now
      const { resource, identity, surroundings } = process
      const anew = () => {
        process.verdict = undefined
      }
      process.verdict = judge(this.#rules, {
        name: String(resource.attributes.get('service.name')),
        executable: identity.executable,
        listening: () => [...process.ports, ...(listening ?? this.#ports.of(process, pid, now, anew))],
        attribute: key => String(resource.attributes.get(key) ?? ''),
        podLabel: key => surroundings?.podLabels.get(key),
      })
    }
    return process.verdict
  }

  /** Once in a second is enough. */
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

  /** Looks again at a process that is known. `executed`: it runs another program. */
  #check(pid: number, comm: string, known: Process, now: number, executed: boolean): Process {
    known.checkedMs = now
    if (known.endedMs !== undefined) {
      // Who begins without executing a program is not told.
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
      // Gone: what still comes of it was on its way before.
      this.#renew(known)
      return known
    }
    if (start !== known.identity.start) return this.#replaced(pid, comm, known, now)
    if (executed || files.comm !== known.comm || known.identity.isUnread) {
      const { digest, executable, isUnread } = files.facts(pid)
      // Of a process that only took another name more is known than can be read now.
      const isKept = isUnread && !executed && executable.startsWith(known.identity.executable)
      if (!isKept && digest !== known.identity.digest) return this.#replaced(pid, comm, known, now)
      // A thread's or a program's new name for itself.
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

  /** A process may be moved to its control group shortly after it began; later that is rare. */
  #placeAgain(pid: number, known: Process, now: number): void {
    const isYoung = now - known.madeMs < youngMs
    if (!isYoung && now - known.placedMs < placeEveryMs) return
    known.placedMs = now
    const place = this.#reader.place(pid) ?? known.place
    if (place === known.place) return
    known.place = place
    // In a container its user is another, and so is the account.
    const account = this.#reader.accountOf(known.identity.user)
    if (place.id !== '') known.identity = { ...known.identity, owner: '', account }
  }

  /** One that was first looked at while it ended is placed by what the kernel told of it. */
  #placeByNews(known: Process, news: ProcessNews): void {
    const place = placeOfNews(news)
    if (known.place !== noPlace || place === noPlace) return
    known.place = place
    known.identity = { ...known.identity, owner: '' }
    this.#renew(known)
  }

  /** Something else may have been found out of what it runs in. */
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
    // Also where something was told: it may be of who had the number before.
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
   * What was read while it ran tells more than what the kernel tells of it. One that was gone before anybody looked keeps
   * its resource, too: of two that are alike each would have its own series, which no receiver can keep apart.
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

/** How often a process that is asked for is looked at again. */
const checkEveryMs = 1_000
/** So long after it was first seen a process is looked for in another control group, and how often later. */
const youngMs = 5_000
const placeEveryMs = 30_000
/** What was under way when a process ended has arrived by then. */
const lingerMs = 5_000
/** What is counted, such as bytes of connections, is told later: some intervals of metrics. */
const lateMs = 60_000
/** So many milliseconds a search works before it lets others. */
const workMs = 2
/** How long a decision holds that ports may change. */
const judgeEveryMs = 10_000
/** How long an export of its own spans says that a process is instrumented: several times what SDKs take between two. */
const instrumentedMs = 600_000
