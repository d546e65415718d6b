import { readdirSync } from 'node:fs'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import type { MapHandle, UprobeHandle } from '../../kernel/native.ts'
import { type Mapping, programOf, readMappings } from '../../kernel/process-maps.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { errorText, type Logger } from '../../lib/logger.ts'
import { type Candidate, examine, examinePath, Gone, isFarMapping, type Plan } from './examine.ts'
import { type LibraryName, libraryAt, tlsFunctions } from './libraries.ts'
import { standingFiles } from './standing-files.ts'

/** A file that was looked at for what goes inside TLS, for the status document. */
export interface TlsAttachment {
  /** As a process that maps it sees it. */
  readonly path: string
  /** Device and inode. */
  readonly inode: string
  readonly buildId: string
  readonly library: LibraryName
  /** Functions that are probed. */
  readonly symbols: readonly string[]
  /** How many processes map it, as far as they were looked at. */
  readonly processes: number
  readonly attached: boolean
  /** Why it is not; empty where it is. */
  readonly reason: string
}

export interface TlsProbesOptions {
  readonly log: Logger
  /** Processes are those listed here. */
  readonly procDir?: string
  /** Where the host's own files are. */
  readonly rootDir?: string
  /** Number of this process as `procDir` has it: it is never looked at. */
  readonly selfPid: number
  /** Whether what runs from this path, or the library there, is to be left alone. */
  readonly denied?: (path: string) => boolean
  /** Nobody may map a file for so long before it is let go. */
  readonly lingerMs?: number
  /** The kernel side looks at socket calls of TLS only while something is attached. */
  readonly setAttached: (attached: boolean) => void
}

/** The programs of the kernel side (bpf/include/tls.h). */
export const tlsPrograms = ['svc_tls_enter', 'svc_tls_return'] as const

const scanMs = 5000
/** A process is looked at again after this time, then after twice as long each time: libraries may be loaded late. */
const againMs = 5000
const mostAgainMs = 300_000
const lingerMs = 60_000
const noticedMs = 100
const mostAttached = 128
const mostKnownFiles = 8192
const mostUsers = 1000
/** Processes that are looked at before other work gets a turn. */
const turn = 16

interface Looked {
  atMs: number
  waitMs: number
}

/** A file with TLS functions. */
interface Target extends Plan {
  readonly pids: Set<number>
  /** The host's own, which is probed before anybody maps it: a program may run for less than the time between scans. */
  standing: boolean
  unusedMs: number
  links: UprobeHandle[]
  reason: string
}

/**
 * Finds the TLS libraries that processes map and attaches the programs that read what goes inside, once for each file.
 * Nothing of a process is changed but what the kernel does for a breakpoint.
 */
export class TlsProbes {
  private readonly object: BpfObject
  private readonly options: TlsProbesOptions
  private readonly procDir: string
  private readonly deniedPids: MapHandle
  /** By device and inode. */
  private readonly targets = new Map<string, Target>()
  /** What a mapping leads to; undefined: nothing with TLS functions. */
  private readonly files = new BoundedMap<string, { readonly identity: string | undefined }>(mostKnownFiles)
  private readonly looked = new Map<number, Looked>()
  private readonly denied = new Set<number>()
  private timer: NodeJS.Timeout | undefined
  private soon: NodeJS.Timeout | undefined
  private scanning: Promise<void> | undefined
  private standingStamp = ''
  private closed = false

  constructor(object: BpfObject, options: TlsProbesOptions) {
    this.object = object
    this.options = options
    this.procDir = options.procDir ?? '/proc'
    this.deniedPids = object.map('tls_denied')
  }

  /** Scans now, and from now on. Resolves when the processes that are there have been looked at. */
  start(): Promise<void> {
    this.timer = setInterval(() => void this.scan(), scanMs)
    this.timer.unref()
    return this.scan()
  }

  /** A process runs another program now: it is looked at soon. */
  noticed(pid: number): void {
    if (this.closed) return
    this.looked.delete(pid)
    this.soon ??= setTimeout(() => {
      this.soon = undefined
      void this.scan()
    }, noticedMs)
    this.soon.unref()
  }

  /** Looks at all processes that are new or due. Never rejects. */
  scan(): Promise<void> {
    if (this.closed) return Promise.resolve()
    this.scanning ??= this.scanAll()
      .catch(error => this.options.log.warn('cannot look for TLS libraries', { error }))
      .finally(() => {
        this.scanning = undefined
      })
    return this.scanning
  }

  attachments(): TlsAttachment[] {
    return [...this.targets.values()].map(
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

  /** Processes that map a file, by its device and inode; as far as they were looked at, and 1,000 at most. */
  usersOf(inode: string): readonly number[] {
    return [...(this.targets.get(inode)?.pids ?? [])].slice(0, mostUsers)
  }

  /** Detaches all. A few hundredths of a second for each file, which the kernel takes. */
  close(): void {
    if (this.closed) return
    this.closed = true
    clearInterval(this.timer)
    clearTimeout(this.soon)
    this.options.setAttached(false)
    for (const target of this.targets.values()) this.detach(target)
  }

  private async scanAll(): Promise<void> {
    await this.findStanding()
    const nowMs = performance.now()
    const pids = new Set<number>()
    for (const name of readdirSync(this.procDir)) {
      const pid = Number(name)
      if (Number.isInteger(pid) && pid > 0) pids.add(pid)
    }
    for (const pid of this.looked.keys()) if (!pids.has(pid)) this.forget(pid)
    let done = 0
    for (const pid of pids) {
      if (this.closed) return
      if (!this.isDue(pid, nowMs)) continue
      await this.look(pid)
      if (++done % turn === 0) await new Promise(resolve => setImmediate(resolve))
    }
    this.release(nowMs)
  }

  private isDue(pid: number, nowMs: number): boolean {
    const looked = this.looked.get(pid)
    if (looked === undefined) {
      this.looked.set(pid, { atMs: nowMs, waitMs: againMs })
      return true
    }
    // Whoever has the number of one that was denied must not be taken for it.
    if (nowMs - looked.atMs < looked.waitMs) return this.denied.has(pid)
    looked.atMs = nowMs
    looked.waitMs = Math.min(2 * looked.waitMs, mostAgainMs)
    return true
  }

  private async look(pid: number): Promise<void> {
    const program = programOf(this.procDir, pid)
    if (program === undefined) return
    const denied = pid === this.options.selfPid || this.options.denied?.(program) === true
    this.deny(pid, denied)
    const found = new Set<Target>()
    if (!denied) {
      for (const candidate of this.candidates(pid, program)) {
        const target = await this.targetOf(candidate)
        if (target !== undefined) found.add(target)
        if (this.closed) return
      }
    }
    for (const target of this.targets.values()) {
      if (found.has(target)) target.pids.add(pid)
      else target.pids.delete(pid)
    }
  }

  private candidates(pid: number, program: string): Iterable<Candidate> {
    const found = new Map<string, Candidate & { readonly mappings: [Mapping, ...Mapping[]] }>()
    try {
      for (const mapping of readMappings(this.procDir, pid)) {
        const known = found.get(mapping.file)
        const library = libraryAt(mapping.path, mapping.path === program)
        if (known !== undefined) known.mappings.push(mapping)
        else if (library !== undefined)
          found.set(mapping.file, { procDir: this.procDir, pid, mappings: [mapping], library })
      }
    } catch {
      // It is gone, or is hidden from this process: of those that are, capabilities tell more than each of them.
    }
    return found.values()
  }

  private async targetOf(candidate: Candidate): Promise<Target | undefined> {
    const [{ file, path }] = candidate.mappings
    const key = `${file} ${path}`
    const known = this.files.get(key)
    if (known !== undefined && known.identity === undefined) return undefined
    const target = known?.identity && this.targets.get(known.identity)
    if (target) return target
    try {
      const found = await this.newTarget(candidate)
      this.files.set(key, { identity: found?.identity })
      return found
    } catch (error) {
      if (error instanceof Gone) return undefined // another process that maps it will do
      this.files.set(key, { identity: undefined })
      this.options.log.debug('a file cannot be looked at for TLS', { path, error })
      return undefined
    }
  }

  private async newTarget(candidate: Candidate): Promise<Target | undefined> {
    if (isFarMapping(candidate)) throw new Error('it is on a file system that may hang')
    return this.adopt(await examine(candidate, identity => this.targets.has(identity)), false)
  }

  /** Makes a target of what was found, and attaches to it, unless it is one. Throws `Gone`. */
  private adopt(plan: Plan | string | undefined, standing: boolean): Target | undefined {
    if (plan === undefined || this.closed) return undefined
    const known = this.targets.get(typeof plan === 'string' ? plan : plan.identity)
    if (known !== undefined || typeof plan === 'string') {
      if (known !== undefined && standing) known.standing = true
      return known
    }
    const target: Target = {
      ...plan,
      pids: new Set(),
      standing,
      unusedMs: performance.now(),
      links: [],
      reason: plan.fault ?? '',
    }
    this.targets.set(plan.identity, target)
    if (target.reason === '') this.attach(target)
    return target
  }

  private attach(target: Target): void {
    const { native, handle } = this.object
    const { log, denied, setAttached } = this.options
    const attached = this.attachedFiles()
    if (denied?.(target.path) === true) target.reason = 'the configuration leaves it out'
    else if (attached >= mostAttached) target.reason = `${mostAttached} files are probed already`
    if (target.reason !== '') return
    const [enter, leave] = tlsPrograms
    const link = (program: string, atReturn: boolean) => {
      const probes = target.probes.filter(({ does }) => !atReturn || does !== 'free')
      const offsets = probes.map(({ offset }) => offset)
      const cookies = probes.map(({ does }) => tlsFunctions.indexOf(does))
      target.links.push(native.uprobeAttach(handle, program, target.openPath, offsets, cookies, atReturn))
    }
    try {
      // A call that is seen to begin must be seen to return.
      link(leave, true)
      link(enter, false)
      setAttached(true)
      const { path, library, buildId } = target
      log.debug('TLS is read in a library', { path, library, build_id: buildId })
    } catch (error) {
      this.detach(target)
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        this.targets.delete(target.identity)
        throw new Gone(target.path)
      }
      target.reason = errorText(error)
      log.debug('TLS cannot be read in a library', { path: target.path, error })
    }
  }

  private detach(target: Target): void {
    for (const link of target.links.reverse()) this.object.native.uprobeDetach(link)
    target.links = []
  }

  /** The host's own libraries, when a folder of them has changed. */
  private async findStanding(): Promise<void> {
    const { stamp, files } = standingFiles(this.options.rootDir ?? '/', this.standingStamp)
    if (files === undefined) return
    this.standingStamp = stamp
    const before = new Set([...this.targets.values()].filter(({ standing }) => standing))
    for (const { path, library } of files) {
      try {
        const plan = await examinePath(path, library, identity => this.targets.has(identity))
        const target = this.adopt(plan, true)
        if (target !== undefined) before.delete(target)
      } catch (error) {
        this.options.log.debug('a file cannot be looked at for TLS', { path, error })
      }
    }
    for (const replaced of before) replaced.standing = false
  }

  private release(nowMs: number): void {
    for (const [identity, target] of this.targets) {
      if (target.pids.size > 0 || target.standing) {
        target.unusedMs = nowMs
      } else if (nowMs - target.unusedMs >= (this.options.lingerMs ?? lingerMs)) {
        this.detach(target)
        this.targets.delete(identity)
      }
    }
    if (this.attachedFiles() === 0) this.options.setAttached(false)
  }

  private attachedFiles(): number {
    let count = 0
    for (const { links } of this.targets.values()) if (links.length > 0) count++
    return count
  }

  private forget(pid: number): void {
    this.looked.delete(pid)
    this.deny(pid, false)
    for (const target of this.targets.values()) target.pids.delete(pid)
  }

  private deny(pid: number, denied: boolean): void {
    if (denied === this.denied.has(pid)) return
    const key = new Uint8Array(Uint32Array.of(pid).buffer)
    try {
      if (denied) this.object.native.mapUpdate(this.deniedPids, key, Uint8Array.of(1), 0)
      else this.object.native.mapDelete(this.deniedPids, key)
    } catch (error) {
      this.options.log.warn('a process cannot be left out of what is read inside TLS', { pid, error })
      return
    }
    if (denied) this.denied.add(pid)
    else this.denied.delete(pid)
  }
}
