import type { JsonObject } from '../../../../../foundation/lib/json-fields.ts'
import { objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import { keeperOf, type ObjectKeeper } from '../../../../../identity/discovery/kubernetes/resource-watch.ts'
import type { Watched } from './watched.ts'

/** Maximum objects of one resource. */
export const maxObjects = 100_000

export interface ObjectTableOptions<Kept extends Watched> {
  read(object: JsonObject): Kept | undefined
  /** `now` is undefined if the object was deleted; another one with its name may exist by then. */
  changed(key: string, before: Kept | undefined, now: Kept | undefined): void
  /** Called if there is no room for an object. */
  full(): void
}

/** Kept data of the objects of one resource, from all of its watches. */
export class ObjectTable<Kept extends Watched> {
  readonly #options: ObjectTableOptions<Kept>
  readonly #byUid = new Map<string, Kept>()
  readonly #byKey = new Map<string, Kept>()

  constructor(options: ObjectTableOptions<Kept>) {
    this.#options = options
  }

  get(key: string): Kept | undefined {
    return this.#byKey.get(key)
  }

  keys(): Iterable<string> {
    return this.#byKey.keys()
  }

  /** Keeper for the objects of one watch. */
  keeper(): ObjectKeeper {
    return keeperOf(
      object => this.#take(object),
      uid => this.#gone(uid),
    )
  }

  #take(object: JsonObject): string {
    const uid = textOf(objectOf(object.metadata).uid, 128)
    const kept = uid === '' ? undefined : this.#options.read(object)
    if (kept === undefined) return ''
    if (!this.#byUid.has(uid) && this.#byUid.size >= maxObjects) {
      this.#options.full()
      return ''
    }
    const before = this.#byKey.get(kept.key)
    this.#byUid.set(uid, kept)
    this.#byKey.set(kept.key, kept)
    this.#options.changed(kept.key, before, kept)
    return uid
  }

  #gone(uid: string): void {
    const kept = this.#byUid.get(uid)
    if (kept === undefined) return
    this.#byUid.delete(uid)
    // The event of a replacement with the same name may come before that of the deletion.
    if (this.#byKey.get(kept.key) !== kept) return
    this.#byKey.delete(kept.key)
    this.#options.changed(kept.key, kept, undefined)
  }
}
