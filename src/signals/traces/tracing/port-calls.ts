import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Connection } from '../../../foundation/model/connection.ts'

/** Counts for a server's port, from either side of its connections, in all network namespaces. */
export interface PortCount {
  /** A call seen on both sides counts once. */
  readonly calls: number
  /** Connections that looked like a known protocol and turned out to be something else. */
  readonly refused: number
}

interface Entry {
  /** Calls by the side on which they were seen. */
  answered: number
  asked: number
  refused: number
}

const maxPorts = 256

/** Calls by the server's port, for the most recently used ports. Allocates nothing for a known port. */
export class PortCalls {
  readonly #ports = new BoundedMap<number, Entry>(maxPorts)

  called({ server, serverPort }: Connection, calls = 1): void {
    if (server) this.#entry(serverPort).answered += calls
    else this.#entry(serverPort).asked += calls
  }

  refused(port: number): void {
    this.#entry(port).refused++
  }

  /** Undefined if there were no recent calls. */
  of(port: number): PortCount | undefined {
    const known = this.#ports.get(port)
    return known && { calls: Math.max(known.answered, known.asked), refused: known.refused }
  }

  #entry(port: number): Entry {
    const known = this.#ports.get(port)
    if (known !== undefined) return known
    const made = { answered: 0, asked: 0, refused: 0 }
    this.#ports.set(port, made)
    return made
  }
}
