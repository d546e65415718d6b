// Which service of this host stands behind an address.

import { networkInterfaces } from 'node:os'
import type { ProcessTable } from '../../entities/process-table.ts'
import type { EdgeNode } from '../../window/edge-graph.ts'

/** A service by its name. */
export interface ServiceId {
  readonly name: string
  /** Empty for none. */
  readonly namespace: string
}

/** How long what was found holds, and how much longer than it took to find. */
const listenersMs = 5_000
const restFactor = 100
const addressesMs = 30_000
/** Processes that listen for others: who answers is not to be told by them. */
const forwarders = /^(docker-proxy|rootlessport|slirp4netns|kube-proxy|conmon|pasta|systemd|init)$/

/**
 * Knows who listens at the ports of this host. Looks while it is asked, every five seconds at most, and more rarely where
 * that takes long; an answer is made of what was found last.
 */
export class LocalNames {
  readonly #processes: Pick<ProcessTable, 'liveServices'>
  readonly #now: () => number
  readonly #interfaces: () => Iterable<string>
  #addresses: ReadonlySet<string> = new Set()
  #addressesMs = Number.NEGATIVE_INFINITY
  #listeners: ReadonlyMap<number, ServiceId | undefined> = new Map()
  #againMs = Number.NEGATIVE_INFINITY
  #search: Promise<void> | undefined

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(
    processes: Pick<ProcessTable, 'liveServices'>,
    now: () => number = () => performance.now(),
    interfaces: () => Iterable<string> = ownAddresses,
  ) {
    this.#processes = processes
    this.#now = now
    this.#interfaces = interfaces
  }

  /** Waits until it was looked once. */
  async ready(): Promise<void> {
    this.refresh()
    if (this.#againMs === Number.NEGATIVE_INFINITY) await this.#search
  }

  /** Looks again, soon, where it was long ago. */
  refresh(): void {
    if (this.#search !== undefined || this.#now() < this.#againMs) return
    this.#search = this.#find()
  }

  /** Whether an address belongs to this host. */
  isOwn(address: string): boolean {
    const now = this.#now()
    if (now - this.#addressesMs >= addressesMs) {
      this.#addressesMs = now
      this.#addresses = new Set(this.#interfaces())
    }
    return address.startsWith('127.') || address === '::1' || this.#addresses.has(address)
  }

  /** Who listens at a TCP port of an address of this host; undefined where nobody does, several do, or it is not known. */
  at(address: string, port: number): ServiceId | undefined {
    return this.isOwn(address) ? this.#listeners.get(port) : undefined
  }

  async #find(): Promise<void> {
    const beganMs = this.#now()
    try {
      const listeners = new Map<number, ServiceId | undefined>()
      for (const { name, namespace, ports } of await this.#processes.liveServices()) {
        if (forwarders.test(name)) continue
        for (const port of ports) listeners.set(port, listeners.has(port) ? undefined : { name, namespace })
      }
      this.#listeners = listeners
    } catch {
      // What was known holds on: names are all that is missing.
    }
    const nowMs = this.#now()
    this.#againMs = nowMs + Math.max(listenersMs, restFactor * (nowMs - beganMs))
    this.#search = undefined
  }
}

/** Addresses at which services were seen that are not this host's own: those of containers. */
export class SeenAddresses {
  readonly #nodes = new Map<string, EdgeNode | undefined>()

  constructor(nodes: Iterable<EdgeNode>, names: LocalNames) {
    for (const node of nodes)
      for (const address of node.addresses) {
        if (names.isOwn(address)) continue
        const known = this.#nodes.get(address)
        // Where several share one, as the containers of a pod do, it names none of them.
        this.#nodes.set(address, this.#nodes.has(address) && known !== node ? undefined : node)
      }
  }

  at(address: string): EdgeNode | undefined {
    return this.#nodes.get(address)
  }
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(all => (all ?? []).map(({ address }) => address))
}
