// Files whose functions have probes: a bounded number, shared by their owners.

import { FairShare, isSameOwner, type Owner, ownerText } from '../../../foundation/lib/fair-share.ts'
import { errorText, type Logger } from '../../../foundation/lib/logger.ts'
import { within } from '../../../foundation/lib/within.ts'
import type { BpfObject } from '../../../kernel/bpf-object.ts'
import type { UprobeHandle } from '../../../kernel/native.ts'
import { type Plan, UnreadableProcessError } from './examine.ts'
import { tlsFunctions } from './libraries.ts'
import type { TlsPrograms } from './programs.ts'

/** A file with TLS functions. */
export interface Target extends Plan {
  readonly pids: Set<number>
  /** Belongs to the host, and is probed before any process maps it: a program may run for less than a scan interval. */
  standing: boolean
  unusedMs: number
  links: UprobeHandle[]
  /** Why it is not probed. */
  reason: string
  /** Owner that its place counts against; undefined: it has no place, or is the host's. */
  owner: Owner | undefined
  /** Not probed for lack of a place, or of time. */
  waits: boolean
  /** Dropped: a late attachment is detached at once. */
  dropped: boolean
}

export function targetOf(plan: Plan, standing: boolean): Target {
  return {
    ...plan,
    pids: new Set(),
    standing,
    unusedMs: performance.now(),
    links: [],
    reason: plan.fault ?? '',
    owner: undefined,
    waits: false,
    dropped: false,
  }
}

export interface ProbedFilesOptions {
  readonly object: BpfObject
  readonly programs: TlsPrograms
  readonly log: Logger
  /** The kernel side handles socket calls of TLS only while something is attached. */
  readonly setAttached: (attached: boolean) => void
  readonly ownerOf: (pid: number) => Owner
}

const mostPlaces = 128
/** Maximum files of the host's own libraries, which users cannot fill. */
const mostStanding = 32
/** Maximum files being detached while others wait: each takes the kernel some time. */
const mostLeaving = 256
/** Processes of a file that are checked for another owner that needs it. */
const mostAsked = 16
/** Maximum wait for an attachment, which the memory lock of a hostile process may delay. */
const attachMs = 1000

export class ProbedFiles {
  /** Files without a place, and files that lost theirs to another owner, since the start. */
  refused = 0
  taken = 0
  readonly #options: ProbedFilesOptions
  readonly #share = new FairShare(mostPlaces)
  /** Files with a place, in order of arrival. */
  readonly #placed = new Set<Target>()
  readonly #leaving = new Set<Promise<unknown>>()
  #standing = 0
  #closed = false

  constructor(options: ProbedFilesOptions) {
    this.#options = options
  }

  /**
   * Attaches to a file of `owner` (undefined: the host's own) if there is a place; otherwise sets the reason. Throws
   * `Gone` if the file is gone.
   */
  async attach(target: Target, owner: Owner | undefined): Promise<void> {
    if (!this.#place(target, owner)) {
      if (!target.waits) this.refused++
      target.waits = true
      return
    }
    target.waits = false
    target.reason = 'the kernel is still attaching'
    await within(attachMs, this.#link(target))
  }

  /** Drops a file. The kernel takes some hundredths of a second, in which nothing blocks. */
  drop(target: Target): void {
    target.dropped = true
    this.#free(target)
    this.#detach(target)
  }

  /** Drops all files. Resolves when the kernel has detached them. */
  async close(): Promise<void> {
    this.#closed = true
    this.#options.setAttached(false)
    for (const target of [...this.#placed]) this.drop(target)
    await Promise.all(this.#leaving)
  }

  /** False: no place; the target has the reason. */
  #place(target: Target, owner: Owner | undefined): boolean {
    if (this.#leaving.size >= mostLeaving) {
      target.reason = 'too many files are being detached right now'
      return false
    }
    if (owner === undefined) {
      if (this.#standing >= mostStanding) {
        target.reason = `limit of ${mostStanding} probed files of the host reached`
        return false
      }
      this.#standing++
    } else if (this.#makeRoom(owner)) {
      this.#share.add(owner, 1)
    } else {
      const has = this.#share.usedBy(owner)
      target.reason = `limit of ${mostPlaces} probed files reached, ${has} of them for ${ownerText(owner)}`
      return false
    }
    target.owner = owner
    this.#placed.add(target)
    return true
  }

  #makeRoom(owner: Owner): boolean {
    while (!this.#share.hasRoom(1)) {
      const giver = this.#share.giver(owner, 1)
      if (giver === undefined) return false
      const isNeighbour = giver.group === owner.group
      if (isNeighbour && this.#share.usedBy(giver) <= this.#share.usedBy(owner) + 1) return false
      this.#takeFrom(giver, owner)
    }
    return true
  }

  /** Frees the newest place of an owner, unless another owner with fewer places needs the file too. */
  #takeFrom(giver: Owner, taker: Owner): void {
    const held = [...this.#placed].filter(({ owner }) => owner !== undefined && isSameOwner(owner, giver))
    for (const target of held) {
      const other = this.#otherOwner(target, giver)
      if (other === undefined) continue
      this.#share.remove(giver, 1)
      this.#share.add(other, 1)
      target.owner = other
      return
    }
    const target = held.at(-1)!
    this.taken++
    this.#free(target)
    this.#detach(target)
    target.waits = true
    target.reason = `detached in favour of ${ownerText(taker)}: ${ownerText(giver)} has more probed files than others`
  }

  #otherOwner(target: Target, giver: Owner): Owner | undefined {
    let asked = 0
    for (const pid of target.pids) {
      if (++asked > mostAsked) return undefined
      const owner = this.#options.ownerOf(pid)
      if (!isSameOwner(owner, giver) && this.#share.usedBy(owner) + 1 < this.#share.usedBy(giver))
        return owner
    }
    return undefined
  }

  #free(target: Target): void {
    if (!this.#placed.delete(target)) return
    if (target.owner === undefined) this.#standing--
    else this.#share.remove(target.owner, 1)
    target.owner = undefined
    if (this.#placed.size === 0) this.#options.setAttached(false)
  }

  async #link(target: Target): Promise<void> {
    const { log, programs, setAttached } = this.#options
    const links: UprobeHandle[] = []
    const returns = target.probes.filter(({ does }) => does !== 'free')
    try {
      // Return probes first: a call whose start is seen must have an end.
      links.push(await this.#attached(programs.leave, target, returns, true))
      for (const program of new Set(Object.values(programs.enter))) {
        const begun = target.probes.filter(({ does }) => programs.enter[does] === program)
        if (begun.length > 0) links.push(await this.#attached(program, target, begun, false))
      }
    } catch (error) {
      this.#leave(links)
      this.#free(target)
      target.reason = errorText(error)
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new UnreadableProcessError(target.path)
      log.debug('cannot decode TLS of a library', { path: target.path, error })
      return
    }
    if (this.#closed || !this.#placed.has(target)) return this.#leave(links)
    target.links = links
    target.reason = ''
    setAttached(true)
    const { path, library, buildId } = target
    log.debug('decoding TLS of a library', { path, library, build_id: buildId })
  }

  #attached(
    program: string,
    target: Target,
    probes: Target['probes'],
    atReturn: boolean,
  ): Promise<UprobeHandle> {
    const { object, programs } = this.#options
    const offsets = probes.map(({ offset }) => offset)
    const cookies = probes.map(({ does }) => (programs.hasCookies ? tlsFunctions.indexOf(does) : 0))
    return object.attachUprobe(program, target.openPath, offsets, cookies, atReturn)
  }

  #detach(target: Target): void {
    this.#leave(target.links)
    target.links = []
  }

  /** Detaches in reverse order. */
  #leave(links: readonly UprobeHandle[]): void {
    if (links.length === 0) return
    const done = (async () => {
      for (const link of links.toReversed()) await this.#options.object.detachUprobe(link)
    })()
      .catch(error => this.#options.log.warn('cannot detach from a TLS library', { error }))
      .finally(() => this.#leaving.delete(done))
    this.#leaving.add(done)
  }
}
