import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import { groupOf, unknownOwner } from '../../kernel/process-owner.ts'
import { type ContainerPlace, noPlace, placeOf } from './container-place.ts'
import { maxDeclaredBytes } from './declared-attributes.ts'
import { Environments, emptyEnvironment } from './process-environment.ts'
import { digestOf, ProcessFiles, type ProgramFacts, unknownStart } from './process-files.ts'
import { placeOfNews, sameStart } from './process-news.ts'
import type { ProcessIdentity } from './process-resource.ts'
import { RuntimeVersions } from './runtime-version.ts'
import { serviceName } from './service-name.ts'
import { UserNames } from './user-names.ts'

/** A process and its place. */
export interface FoundProcess {
  readonly identity: ProcessIdentity
  /** Undefined: no longer in /proc. */
  readonly place: ContainerPlace | undefined
}

const maxPlaces = 1_024
/** Room for the control group paths of a dozen hierarchies. */
const maxGroupBytes = 64 * 1024
const maxPathBytes = 1_024
/** Maximum bytes of the first word of a command line. */
const maxWordBytes = 256
/** USER_HZ is 100 on all architectures that svc supports (include/uapi/asm-generic/param.h). */
const tickUs = 10_000

/** Identifies processes by /proc, or by kernel events if they have ended. */
export class ProcessReader {
  readonly files: ProcessFiles
  readonly environments: Environments
  readonly #users: UserNames
  readonly #versions: RuntimeVersions
  /** By a digest of the control group file. */
  readonly #places = new BoundedMap<string, { readonly place: ContainerPlace; readonly group: string }>(
    maxPlaces,
  )
  /** Group of the process whose place was last read; see `groupOf`. */
  #group = ''
  readonly #bootUs: number

  /** `now`: milliseconds of a monotonic clock. `allowedKeys`: see `mayDeclare`. */
  constructor(procDir: string, now: () => number, allowedKeys: readonly string[]) {
    this.environments = new Environments(allowedKeys)
    this.files = new ProcessFiles(procDir)
    this.#users = new UserNames(procDir, now)
    this.#versions = new RuntimeVersions(this.files)
    this.#bootUs = bootUs(procDir)
  }

  /** Undefined if there is no such process. Takes about 100 µs. */
  read(pid: number): FoundProcess | undefined {
    const { files } = this
    const start = files.start(pid)
    if (start === unknownStart) return undefined
    const { parent } = files
    const facts = files.facts(pid)
    const environment = this.environments.read(facts.environment)
    const user = files.user(pid)
    const place = this.place(pid)
    const identity = {
      pid,
      start,
      startedUs: this.#startedUs(start),
      parent,
      user,
      owner: this.#ownerOf(user, pid, place ?? noPlace),
      account: this.accountOf(user),
      ...programOf(facts),
      environment,
      runtimeVersion: this.#versions.of(pid, facts.executable),
    }
    return { identity, place }
  }

  /** A process that ended before it was read. `comm` is its name if there is no kernel event. */
  gone(pid: number, comm: string, news: ProcessNews | undefined) {
    const place = placeOfNews(news)
    const user = news?.user ?? -1
    const identity = {
      pid,
      start: news?.start ?? unknownStart,
      startedUs: news === undefined ? 0 : this.#startedUs(news.start),
      parent: news?.parent ?? 0,
      user,
      owner: this.#ownerOf(user, pid, place),
      // The kernel reports the last two groups; users can create and name groups, so only root's count.
      account: user < 0 ? unknownOwner : { group: user === 0 ? place.id : '', user: String(user) },
      ...programOf(goneProgram(news?.comm || comm, news?.path ?? '')),
      environment: emptyEnvironment,
      runtimeVersion: '',
    }
    return { identity, place }
  }

  /** A process that is exiting and has no place in /proc any more. */
  ending({ identity }: FoundProcess, last: ProcessNews | undefined): FoundProcess {
    const { pid, comm, start, executable } = identity
    const news = last !== undefined && sameStart(last.start, start) ? last : undefined
    const departed = this.gone(pid, comm, news)
    if (news !== undefined && executable === '') return departed
    return { ...departed, identity: { ...identity, owner: departed.place === noPlace ? identity.owner : '' } }
  }

  /**
   * Place of a process; undefined if it has ended or is exiting: version 1 hierarchies list an exiting process in no
   * group (proc_cgroup_show in kernel/cgroup/cgroup.c).
   */
  place(pid: number): ContainerPlace | undefined {
    const { files } = this
    this.#group = ''
    const text = files.bytes(pid, 'cgroup', maxGroupBytes)
    if (text.length === 0) return undefined
    const key = createHash('sha1').update(text).digest('base64')
    let found = this.#places.get(key)
    if (found === undefined) {
      const file = text.toString('utf8')
      found = { place: placeOf(file), group: groupOf(file) }
      this.#places.set(key, found)
    }
    const { place } = found
    this.#group = found.group
    if (place !== noPlace) return place
    return files.start(pid) === unknownStart || files.ending ? undefined : place
  }

  /** Owner for the process whose place was last read. */
  accountOf(user: number): Owner {
    return user < 0 ? unknownOwner : { group: this.#group, user: String(user) }
  }

  #ownerOf(user: number, pid: number, place: ContainerPlace): string {
    return user >= 0 && place === noPlace ? this.#users.of(user, pid) : ''
  }

  #startedUs(start: number): number {
    return this.#bootUs === 0 ? 0 : this.#bootUs + start * tickUs
  }
}

/** Parts of a program to keep: arguments may be long and contain secrets. */
function programOf(facts: ProgramFacts) {
  const { comm, executable, digest } = facts
  const service = serviceName(facts)
  return {
    comm,
    executable: shortPath(executable),
    command: ownText((facts.args[0] ?? '').split(' ', 1)[0]!, maxWordBytes),
    service: { ...service, name: ownText(service.name, maxDeclaredBytes) },
    digest,
    isUnread: facts.isUnread,
  }
}

/** Shortens directories, not the file name. */
function shortPath(path: string): string {
  if (path.length <= maxPathBytes) return ownText(path, maxPathBytes)
  const name = ownText(path.slice(path.lastIndexOf('/') + 1), maxWordBytes)
  return `${ownText(path, maxPathBytes - maxWordBytes)}/…/${name}`
}

function goneProgram(comm: string, executable: string): ProgramFacts {
  return { comm, executable, args: [], cwd: '', digest: digestOf(executable), isUnread: false }
}

/** Boot time in microseconds since the Unix epoch (proc_stat(5)); 0: unknown. */
function bootUs(procDir: string): number {
  try {
    const seconds = /^btime (\d{1,12})$/m.exec(readFileSync(`${procDir}/stat`, 'latin1'))
    return seconds === null ? 0 : Number(seconds[1]) * 1e6
  } catch {
    return 0 // hidden on this host: processes have no creation time
  }
}
