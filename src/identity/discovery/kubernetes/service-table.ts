import type { ByteRoom } from '../../../foundation/lib/byte-room.ts'
import type { JsonObject } from '../../../foundation/lib/json-fields.ts'
import { listOf, objectOf, textOf } from '../../../foundation/lib/json-fields.ts'
import type { Interning } from './interning.ts'
import { keeperOf, type ObjectKeeper } from './resource-watch.ts'

/** Maximum number of services; a cluster has several thousand. */
const maxServices = 20_000
const maxAddresses = 4
/** Bytes in memory of a service, and of each address. */
const serviceBytes = 320
const addressBytes = 120

/** A service of the cluster. */
export interface ClusterService {
  readonly name: string
  readonly namespace: string
}

interface Entry extends ClusterService {
  readonly addresses: readonly string[]
}

/** Services of the cluster by address (Kubernetes API, core v1 `Service`). */
export class ServiceTable {
  readonly #entries = new Map<string, Entry>()
  readonly #byAddress = new Map<string, Entry>()
  readonly #interning: Interning
  readonly #room: ByteRoom

  constructor(interning: Interning, room: ByteRoom) {
    this.#interning = interning
    this.#room = room
  }

  get size(): number {
    return this.#entries.size
  }

  /** Service with this cluster address. */
  at(address: string): ClusterService | undefined {
    return this.#byAddress.get(address)
  }

  /** Keeper for the services of one watch. */
  keeper(): ObjectKeeper {
    return keeperOf(
      object => this.#take(object),
      uid => this.#gone(uid),
    )
  }

  clear(): void {
    for (const entry of this.#entries.values()) this.#room.give(bytesOf(entry))
    this.#entries.clear()
    this.#byAddress.clear()
  }

  #take(object: JsonObject): string {
    const metadata = objectOf(object.metadata)
    const spec = objectOf(object.spec)
    const uid = textOf(metadata.uid, 128)
    const name = textOf(metadata.name, 253)
    if (uid === '' || name === '') return ''
    if (!this.#entries.has(uid) && this.#entries.size >= maxServices) return ''
    this.#gone(uid)
    const written = [spec.clusterIP, ...listOf(spec.clusterIPs, maxAddresses)]
    // 'None' means a service without an address.
    const addresses = new Set(written.map(each => textOf(each, 45)).filter(each => /[.:]/.test(each)))
    const entry = {
      name,
      namespace: this.#interning.text(textOf(metadata.namespace, 253)),
      addresses: [...addresses],
    }
    if (!this.#room.take(bytesOf(entry))) return ''
    this.#entries.set(uid, entry)
    for (const address of entry.addresses) this.#byAddress.set(address, entry)
    return uid
  }

  #gone(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    this.#room.give(bytesOf(entry))
    // Another service may have the address now.
    for (const address of entry.addresses)
      if (this.#byAddress.get(address) === entry) this.#byAddress.delete(address)
  }
}

function bytesOf({ name, addresses }: Entry): number {
  return serviceBytes + name.length + addresses.length * addressBytes
}
