// Services of this host by address.

import { networkInterfaces } from 'node:os'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import type { EdgeNode } from '../../view/window/edge-graph.ts'

/** A service by its name. */
export interface ServiceId {
  readonly name: string
  /** Empty if there is none. */
  readonly namespace: string
}

/** Lifetime of a result, and its minimum as a multiple of the time that it took. */
const listenersMs = 5_000
const restFactor = 100
const addressesMs = 30_000
/** Processes that listen on behalf of others: they do not reveal the server. */
const forwarders = /^(docker-proxy|rootlessport|slirp4netns|kube-proxy|conmon|pasta|systemd|init)$/

/**
 * Knows the processes that listen on this host. Scans on demand, every five seconds at most, and more rarely if a scan
 * takes long; answers come from the last scan.
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

  /** `now`: milliseconds of a monotonic clock. */
  constructor(
    processes: Pick<ProcessTable, 'liveServices'>,
    now: () => number = () => performance.now(),
    interfaces: () => Iterable<string> = ownAddresses,
  ) {
    this.#processes = processes
    this.#now = now
    this.#interfaces = interfaces
  }

  /** Waits for the first scan. */
  async ready(): Promise<void> {
    this.refresh()
    if (this.#againMs === Number.NEGATIVE_INFINITY) await this.#search
  }

  /** Starts another scan soon if the last one is old. */
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

  /** The service on a TCP port of this host; undefined if there is none, several, or it is unknown. */
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
      // The previous result is kept: only new names are missing.
    }
    const nowMs = this.#now()
    this.#againMs = nowMs + Math.max(listenersMs, restFactor * (nowMs - beganMs))
    this.#search = undefined
  }
}

/** Addresses of services other than this host's own: those of containers. */
export class SeenAddresses {
  readonly #nodes = new Map<string, EdgeNode | undefined>()

  constructor(nodes: Iterable<EdgeNode>, names: LocalNames) {
    for (const node of nodes)
      for (const address of node.addresses) {
        if (names.isOwn(address)) continue
        const known = this.#nodes.get(address)
        // An address shared by several, as in a pod, identifies none of them.
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
