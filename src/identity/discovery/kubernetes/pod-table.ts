import type { ByteRoom } from '../../../foundation/lib/byte-room.ts'
import type { JsonObject } from '../../../foundation/lib/json-fields.ts'
import type { EntitySink, Owner, Pod } from '../../../foundation/model/entity.ts'
import { entityBytes } from '../../../foundation/model/entity-bytes.ts'
import type { OwnerLookup } from './owner-lookup.ts'
import { isSameOwners, isSamePod, type PodReader } from './pod-reader.ts'
import { keeperOf, type ObjectKeeper } from './resource-watch.ts'

/** Maximum number of pods. A node has hundreds; a server that ignores the node filter must not fill our memory. */
const maxPods = 16_384

interface Entry {
  /** Pod as read: its only owner is its controller. */
  read: Pod
  /** Its Deployment by the naming rule; undefined if the rule does not apply. */
  guess: Owner | undefined
  /** Pod as reported; undefined while it waits for its owners. */
  reported: Pod | undefined
  timer: NodeJS.Timeout | undefined
}

export interface PodTableOptions {
  readonly reader: PodReader
  readonly sink: EntitySink
  readonly room: ByteRoom
  /** Maximum delay of a pod while its owners are looked up, in milliseconds. */
  readonly ownerMs: number
}

/** Current pods. Reports new, changed and removed pods to the sink, nothing twice and never with a wrong owner. */
export class PodTable {
  readonly #options: PodTableOptions
  readonly #entries = new Map<string, Entry>()
  /** Pods by the owner that is being looked up. */
  readonly #waiting = new Map<string, Set<string>>()
  #owners: OwnerLookup | undefined

  constructor(options: PodTableOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** Sets the lookup of owners. */
  use(owners: OwnerLookup): void {
    this.#owners = owners
  }

  /** Keeper for the pods of one watch. */
  keeper(): ObjectKeeper {
    return keeperOf(
      object => this.#take(object),
      uid => this.#gone(uid),
    )
  }

  /** The lookup of an owner is finished. */
  settled(ownerUid: string): void {
    const uids = this.#waiting.get(ownerUid)
    if (uids === undefined) return
    this.#waiting.delete(ownerUid)
    for (const uid of uids) {
      const entry = this.#entries.get(uid)
      if (entry !== undefined) this.#complete(entry)
    }
  }

  /** Reports all pods as gone. */
  clear(): void {
    for (const uid of [...this.#entries.keys()]) this.#gone(uid)
  }

  #take(object: JsonObject): string {
    const reading = this.#options.reader.read(object)
    if (reading === undefined) return ''
    const { pod, templateHash } = reading
    let entry = this.#entries.get(pod.uid)
    const { room } = this.#options
    if (entry === undefined) {
      if (this.#entries.size >= maxPods || !room.take(entityBytes(pod))) return ''
      entry = { read: pod, guess: undefined, reported: undefined, timer: undefined }
      this.#entries.set(pod.uid, entry)
    } else {
      if (isSamePod(entry.read, pod) && isSameOwners(entry.read.owners, pod.owners)) return pod.uid
      // The old state is better than none.
      if (!room.change(entityBytes(entry.read), entityBytes(pod))) return pod.uid
      if (!isSameOwners(entry.read.owners, pod.owners)) this.#leaveWaiting(entry.read)
      entry.read = pod
    }
    entry.guess = deploymentOf(pod.owners[0], templateHash)
    this.#complete(entry)
    return pod.uid
  }

  #gone(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    this.#options.room.give(entityBytes(entry.read))
    clearTimeout(entry.timer)
    this.#leaveWaiting(entry.read)
    if (entry.reported !== undefined) this.#options.sink.podGone(uid)
  }

  /** Reports a pod with its known owners. */
  #complete(entry: Entry): void {
    const { read, guess, reported } = entry
    const [owner] = read.owners
    if (owner === undefined) {
      this.#report(entry, read.owners)
      return
    }
    const above = this.#owners?.above(owner, read.namespace) ?? 'unknown'
    if (typeof above !== 'string') {
      this.#report(entry, above.length === 0 ? read.owners : [owner, ...above])
      return
    }
    this.#wait(owner.uid, read.uid)
    // Owners known before stay valid: the owner of an object never changes.
    if (reported?.owners[0]?.uid === owner.uid && reported.owners.length > 1)
      this.#report(entry, reported.owners)
    else if (guess !== undefined) this.#report(entry, [owner, guess])
    else if (above === 'unknown' || reported !== undefined) this.#report(entry, read.owners)
    else
      entry.timer ??= setTimeout(() => this.#report(entry, entry.read.owners), this.#options.ownerMs).unref()
  }

  #report(entry: Entry, owners: readonly Owner[]): void {
    clearTimeout(entry.timer)
    entry.timer = undefined
    const { read, reported } = entry
    if (reported !== undefined && isSamePod(reported, read) && isSameOwners(reported.owners, owners)) return
    entry.reported = owners === read.owners ? read : { ...read, owners }
    this.#options.sink.pod(entry.reported)
  }

  #wait(ownerUid: string, uid: string): void {
    const uids = this.#waiting.get(ownerUid)
    if (uids === undefined) this.#waiting.set(ownerUid, new Set([uid]))
    else uids.add(uid)
  }

  #leaveWaiting({ uid, owners }: Pod): void {
    const ownerUid = owners[0]?.uid ?? ''
    const uids = this.#waiting.get(ownerUid)
    if (uids?.delete(uid) && uids.size === 0) this.#waiting.delete(ownerUid)
  }
}

/** Deployment of a ReplicaSet, whose name is that of the Deployment and the template hash, also a label of its pods. */
function deploymentOf(owner: Owner | undefined, templateHash: string): Owner | undefined {
  const end = `-${templateHash}`
  if (templateHash === '' || owner?.kind !== 'ReplicaSet' || !owner.name.endsWith(end)) return undefined
  const name = owner.name.slice(0, -end.length)
  return name === '' ? undefined : { kind: 'Deployment', name, uid: '' }
}
