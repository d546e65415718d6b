import { readdirSync } from 'node:fs'
import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { CpuLever } from '../../../foundation/lib/cpu-governor.ts'
import { CpuSteps } from '../../../foundation/lib/cpu-steps.ts'
import { type Owner, ownerText, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import type { Logger } from '../../../foundation/lib/logger.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import { Turn } from '../../../foundation/lib/turn.ts'
import type { BpfObject } from '../../../kernel/bpf-object.ts'
import type { MapHandle } from '../../../kernel/native.ts'
import { NoAnswerError, ProcessInspector } from '../../../kernel/process-inspector.ts'
import { type Mapping, mappingsIn, programOf } from '../../../kernel/process-maps.ts'
import { ownerOf } from '../../../kernel/process-owner.ts'
import { type Candidate, examine, examinePath, type Plan, UnreadableProcessError } from './examine.ts'
import { installedFiles } from './installed-files.ts'
import { type LibraryName, libraryAt } from './libraries.ts'
import { ProbedFiles, type Target, targetOf } from './probed-files.ts'
import type { TlsPrograms } from './programs.ts'

/** A file examined for TLS, for the status document. */
export interface TlsAttachment {
  /** Path as seen by a process that maps it. */
  readonly path: string
  /** Device and inode. */
  readonly inode: string
  readonly buildId: string
  readonly library: LibraryName
  /** Probed functions. */
  readonly symbols: readonly string[]
  /** Number of processes that map it, as far as they were scanned. */
  readonly processes: number
  readonly attached: boolean
  /** Why it is not probed; empty if it is. */
  readonly reason: string
}

export interface TlsProbesOptions {
  readonly log: Logger
  readonly programs: TlsPrograms
  /** Directory that lists processes. */
  readonly procDir?: string
  /** Root directory of the host's own files. */
  readonly rootDir?: string
  /** Number of this process in `procDir`; it is never scanned. */
  readonly selfPid: number
  /** Whether a program path or library path is excluded. */
  readonly denied?: (path: string) => boolean
  /** Milliseconds without a process that maps a file before it is dropped. */
  readonly lingerMs?: number
  /** The kernel side handles socket calls of TLS only while something is attached. */
  readonly setAttached: (attached: boolean) => void
}

/** Options of the caller; the back end sets the rest. */
export type TlsOptions = Omit<TlsProbesOptions, 'programs' | 'selfPid' | 'setAttached'>

const scanMs = 5000
/** Factors of the scan interval, by steps, while svc uses too much CPU. */
const slowerBy = [1, 4, 16] as const
/** Interval until a process is scanned again, doubled each time: libraries may be loaded late. */
const againMs = 5000
const mostAgainMs = 300_000
const lingerMs = 60_000
const noticedMs = 100
const mostKnownFiles = 8192
/** Maximum files with TLS functions, probed or not. */
const mostTargets = 512
const mostUsers = 1000
/** Milliseconds of work before yielding. */
const turnMs = 2
/** Mappings of a process between yields. */
const linesAtOnce = 100
/** Milliseconds per scan for the files of one owner; the rest follows in the next scan. */
const examineMs = 250
/** Pause before the next scan if there is more to examine. */
const pauseMs = 500

interface Looked {
  atMs: number
  waitMs: number
  owner: Owner | undefined
}

/**
 * Finds the TLS libraries that processes map and attaches the programs that read inside TLS, once per file. Changes
 * nothing in a process beyond the kernel's breakpoints.
 */
export class TlsProbes {
  readonly #object: BpfObject
  readonly #probed: ProbedFiles
  readonly #options: TlsProbesOptions
  readonly #procDir: string
  readonly #processes: ProcessInspector
  readonly #deniedPids: MapHandle
  /** By device and inode. */
  readonly #targets = new Map<string, Target>()
  /** Identity by mapping; undefined: no TLS functions. */
  readonly #files = small(new BoundedMap<string, { readonly identity: string | undefined }>(mostKnownFiles))
  /** Time when modified code was found in a process's memory, by process and mapping. */
  readonly #faults = small(new BoundedMap<string, number>(mostKnownFiles))
  readonly #looked = new Map<number, Looked>()
  readonly #denied = new Set<number>()
  /** Milliseconds spent on the files of each owner in this scan. */
  readonly #spent = new Map<string, number>()
  /** An owner has files left for the next scan. */
  #hasMore = false
  #timer: NodeJS.Timeout | undefined
  #soon: NodeJS.Timeout | undefined
  #scanning: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #standingStamp = ''
  #closed = false
  readonly #turn = new Turn(turnMs)
  readonly #slowness = new CpuSteps(slowerBy, () => this.#scanRegularly())

  constructor(object: BpfObject, options: TlsProbesOptions) {
    this.#object = object
    this.#options = options
    this.#procDir = options.procDir ?? '/proc'
    this.#deniedPids = object.map('tls_denied')
    const { log, programs, setAttached } = options
    this.#processes = new ProcessInspector({ log })
    this.#probed = new ProbedFiles({ object, programs, log, setAttached, ownerOf: pid => this.#ownerOf(pid) })
  }

  /** Starts scanning. Resolves when the existing processes have been scanned. */
  start(): Promise<void> {
    this.#scanRegularly()
    return this.scan()
  }

  /**
   * Reduces work while svc uses too much CPU: new processes are scanned later, and those that end earlier are missed.
   */
  get lever(): CpuLever {
    const slowness = this.#slowness
    return {
      costMs: () => this.#turn.workedMs,
      lower: () => slowness.lower(),
      raise: () => slowness.raise(),
      get effect() {
        return slowness.isLowered
          ? `new programs are checked for TLS libraries after ${(slowness.value * noticedMs) / 1000} s instead of ${noticedMs / 1000} s`
          : ''
      },
    }
  }

  #scanRegularly(): void {
    if (this.#closed) return
    clearInterval(this.#timer)
    this.#timer = setInterval(() => void this.scan(), scanMs * this.#slowness.value)
    this.#timer.unref()
  }

  /** Scans a process soon after it executed another program. */
  noticed(pid: number): void {
    if (this.#closed) return
    this.#looked.delete(pid)
    this.#scanSoon(noticedMs)
  }

  #scanSoon(afterMs: number): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      void this.scan()
    }, afterMs * this.#slowness.value)
    this.#soon.unref()
  }

  /** Files without a place, and files that lost theirs to another owner, since the start. */
  get losses(): ShareLosses {
    const { refused, taken } = this.#probed
    return { refused, taken }
  }

  /** Failed reads of process memory since the start, by reason. */
  get unread(): Readonly<Record<'late' | 'refused' | 'unavailable', number>> {
    return this.#processes.lost
  }

  /** Scans all processes that are new or due. Never rejects. */
  scan(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    this.#scanning ??= this.#scanAll()
      .catch(error => this.#options.log.warn('cannot search for TLS libraries', { error }))
      .finally(() => {
        this.#scanning = undefined
      })
    return this.#scanning
  }

  attachments(): TlsAttachment[] {
    return [...this.#targets.values()].map(
      ({ path, identity, buildId, library, probes, pids, links, reason }) => ({
        path,
        inode: identity,
        buildId,
        library,
        symbols: probes.map(({ symbol }) => symbol),
        processes: pids.size,
        attached: links.length > 0,
        reason,
      }),
    )
  }

  /** Processes that map a file, by its device and inode; only scanned ones, at most 1,000. */
  usersOf(inode: string): readonly number[] {
    return [...(this.#targets.get(inode)?.pids ?? [])].slice(0, mostUsers)
  }

  /** Detaches all. Resolves when the kernel is done: half a second for 128 files; before Linux 6.6, 0.1 s per place. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow()
    return this.#closing
  }

  #closeNow(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    clearTimeout(this.#soon)
    this.#processes.close()
    return this.#probed.close()
  }

  async #scanAll(): Promise<void> {
    this.#turn.begin()
    await this.#findStanding()
    const nowMs = performance.now()
    const pids = new Set<number>()
    for (const name of readdirSync(this.#procDir)) {
      const pid = Number(name)
      if (Number.isInteger(pid) && pid > 0) pids.add(pid)
    }
    this.#spent.clear()
    this.#hasMore = false
    for (const pid of this.#looked.keys()) {
      if (!pids.has(pid)) this.#forget(pid)
      await this.#turn.rest()
    }
    for (const pid of pids) {
      if (this.#closed) return
      if (!this.#isDue(pid, nowMs)) continue
      await this.#look(pid)
      await this.#turn.rest()
    }
    this.#release(nowMs)
    await this.#placeWaiting()
    this.#turn.end()
    if (this.#hasMore && !this.#closed) this.#scanSoon(pauseMs)
  }

  #isDue(pid: number, nowMs: number): boolean {
    const looked = this.#looked.get(pid)
    if (looked === undefined) {
      this.#looked.set(pid, { atMs: nowMs, waitMs: againMs, owner: undefined })
      return true
    }
    // The number of a denied process may be reused by another one.
    if (nowMs - looked.atMs < looked.waitMs) return this.#denied.has(pid)
    looked.atMs = nowMs
    looked.owner = undefined
    looked.waitMs = Math.min(2 * looked.waitMs, mostAgainMs)
    return true
  }

  async #look(pid: number): Promise<void> {
    const program = programOf(this.#procDir, pid)
    if (program === undefined) return
    const denied = pid === this.#options.selfPid || this.#options.denied?.(program) === true
    this.#deny(pid, denied)
    const found = new Set<Target>()
    if (!denied) {
      const candidates = await this.#candidates(pid, program)
      if (candidates === undefined) return // the memory lock of the process is taken: scan again later
      for (const candidate of candidates) {
        const target = await this.#targetOf(candidate)
        if (target !== undefined) found.add(target)
        if (this.#closed) return
      }
    }
    for (const target of this.#targets.values()) {
      if (found.has(target)) target.pids.add(pid)
      else target.pids.delete(pid)
    }
  }

  /** Undefined if unknown. */
  async #candidates(pid: number, program: string): Promise<Iterable<Candidate> | undefined> {
    const found = new Map<string, Candidate & { readonly mappings: [Mapping, ...Mapping[]] }>()
    let list: Buffer
    this.#turn.end()
    try {
      list = await this.#processes.maps(this.#procDir, pid)
    } catch (error) {
      // It has ended, or is hidden from this process; hidden processes are visible by our capabilities anyway.
      return error instanceof NoAnswerError ? undefined : []
    } finally {
      this.#turn.begin() // other work ran in between
    }
    let lines = 0
    for (const mapping of mappingsIn(list)) {
      if (++lines % linesAtOnce === 0) await this.#turn.rest()
      const library = mapping && libraryAt(mapping.path, mapping.path === program)
      const known = mapping && found.get(mapping.file)
      if (known !== undefined) known.mappings.push(mapping!)
      else if (library !== undefined)
        found.set(mapping!.file, { procDir: this.#procDir, pid, mappings: [mapping!], library })
    }
    return found.values()
  }

  async #targetOf(candidate: Candidate): Promise<Target | undefined> {
    const [{ file, path }] = candidate.mappings
    const key = `${file} ${path}`
    const known = this.#files.get(key)
    if (known !== undefined && known.identity === undefined) return undefined
    const target = known?.identity && this.#targets.get(known.identity)
    if (target && !target.isOfProcess) return target
    // Address space randomisation makes the range specific to each program and each load of a library.
    const own = `${candidate.pid} ${candidate.mappings[0].range} ${file}`
    const faultMs = this.#faults.get(own)
    if (faultMs !== undefined && performance.now() - faultMs < mostAgainMs) return target || undefined
    const owner = this.#ownerOf(candidate.pid)
    if (this.#isSpent(candidate.pid, owner)) return undefined
    const beganMs = performance.now()
    try {
      const found = await this.#newTarget(candidate, owner)
      if (found?.isOfProcess) this.#faults.set(own, performance.now())
      this.#files.set(key, { identity: found?.identity })
      return found
    } catch (error) {
      if (error instanceof UnreadableProcessError) return undefined // another process that maps it will do
      this.#files.set(key, { identity: undefined })
      this.#options.log.debug('cannot check a file for TLS', { path, error })
      return undefined
    } finally {
      const name = ownerText(owner)
      this.#spent.set(name, (this.#spent.get(name) ?? 0) + performance.now() - beganMs)
      this.#turn.end()
    }
  }

  /** Whether an owner's files used up their time in this scan; then its process is scanned again in the next. */
  #isSpent(pid: number, owner: Owner): boolean {
    if ((this.#spent.get(ownerText(owner)) ?? 0) < examineMs) return false
    this.#hasMore = true
    this.#looked.delete(pid)
    return true
  }

  #ownerOf(pid: number): Owner {
    const looked = this.#looked.get(pid)
    if (looked === undefined) return ownerOf(this.#procDir, pid)
    looked.owner ??= ownerOf(this.#procDir, pid)
    return looked.owner
  }

  async #newTarget(candidate: Candidate, owner: Owner): Promise<Target | undefined> {
    const { pid } = candidate
    const plan = await examine(candidate, this.#processes, identity => this.#isSettled(identity))
    return this.#adopt(plan, owner, pid)
  }

  /** Whether the result for a file applies to all processes that map it. */
  #isSettled(identity: string): boolean {
    return this.#targets.get(identity)?.isOfProcess === false
  }

  /**
   * Adds a target for the plan and attaches to it, unless there is one. `owner` brings it with process `pid`;
   * undefined: the host's own. Throws `Gone`.
   */
  async #adopt(plan: Plan | string | undefined, owner?: Owner, pid?: number): Promise<Target | undefined> {
    if (plan === undefined || this.#closed) return undefined
    const known = this.#targets.get(typeof plan === 'string' ? plan : plan.identity)
    if (typeof plan === 'string' || (known !== undefined && (plan.isOfProcess || !known.isOfProcess))) {
      if (known !== undefined && owner === undefined) known.standing = true
      return known
    }
    if (known === undefined && this.#targets.size >= mostTargets && !this.#forgetWaiting()) return undefined
    const target = targetOf(plan, owner === undefined)
    for (const each of known?.pids ?? []) target.pids.add(each)
    this.#targets.set(plan.identity, target)
    if (target.reason !== '') return target
    if (this.#options.denied?.(target.path) === true) target.reason = 'excluded by the configuration'
    else await this.#attach(target, owner, pid)
    return target
  }

  /** The kernel resolves the link of process `pid` again, in a thread that waits for the lock of its memory. */
  async #attach(target: Target, owner?: Owner, pid?: number): Promise<void> {
    try {
      if (pid !== undefined && !(await this.#processes.isFree(this.#procDir, pid)))
        throw new UnreadableProcessError(target.path)
      await this.#probed.attach(target, owner)
    } catch (error) {
      this.#targets.delete(target.identity)
      throw error
    }
  }

  /** Removes the oldest target that waits for a place or is excluded. */
  #forgetWaiting(): boolean {
    for (const [identity, target] of this.#targets) {
      if (target.reason === '' || target.owner !== undefined || target.standing) continue
      this.#targets.delete(identity)
      return true
    }
    return false
  }

  /** Retries files that had no place. */
  async #placeWaiting(): Promise<void> {
    for (const target of this.#targets.values()) {
      const [pid] = target.pids
      if (!target.waits || pid === undefined || this.#closed) continue
      try {
        await this.#attach(target, this.#ownerOf(pid), pid)
      } catch {
        // The process that provided the path is gone; another one will.
      }
      await this.#turn.rest()
    }
  }

  /** Finds the host's own libraries if a directory changed. */
  async #findStanding(): Promise<void> {
    const { stamp, files } = installedFiles(this.#options.rootDir ?? '/', this.#standingStamp)
    if (files === undefined) return
    this.#standingStamp = stamp
    const before = new Set([...this.#targets.values()].filter(({ standing }) => standing))
    for (const { path, library } of files) {
      try {
        const plan = await examinePath(path, library, identity => this.#isSettled(identity))
        const target = await this.#adopt(plan)
        if (target !== undefined) before.delete(target)
      } catch (error) {
        this.#options.log.debug('cannot check a file for TLS', { path, error })
      }
    }
    for (const replaced of before) replaced.standing = false
  }

  #release(nowMs: number): void {
    for (const [identity, target] of this.#targets) {
      if (target.pids.size > 0 || target.standing) {
        target.unusedMs = nowMs
      } else if (nowMs - target.unusedMs >= (this.#options.lingerMs ?? lingerMs)) {
        this.#probed.drop(target)
        this.#targets.delete(identity)
      }
    }
  }

  #forget(pid: number): void {
    this.#looked.delete(pid)
    this.#deny(pid, false)
    for (const target of this.#targets.values()) target.pids.delete(pid)
  }

  #deny(pid: number, denied: boolean): void {
    if (denied === this.#denied.has(pid)) return
    const key = new Uint8Array(Uint32Array.of(pid).buffer)
    try {
      if (denied) this.#object.native.mapUpdate(this.#deniedPids, key, Uint8Array.of(1), 0)
      else this.#object.native.mapDelete(this.#deniedPids, key)
    } catch (error) {
      this.#options.log.warn('cannot exclude a process from TLS decoding', { pid, error })
      return
    }
    if (denied) this.#denied.add(pid)
    else this.#denied.delete(pid)
  }
}
