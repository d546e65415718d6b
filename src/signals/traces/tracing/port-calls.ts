import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Connection } from '../../../foundation/model/connection.ts'

/** What was seen at a server's port, on either side of connections to it, in all network namespaces. */
export interface PortCount {
  /** Where both sides of a call are seen it is one. */
  readonly calls: number
  /** Connections that looked like a known protocol, and were none. */
  readonly refused: number
}

interface Entry {
  /** Calls by the side on which they were seen. */
  answered: number
  asked: number
  refused: number
}

const maxPorts = 256

/** Calls by the server's port, of the ports that were used last. Allocates nothing for a port that is known. */
export class PortCalls {
  readonly #ports = new BoundedMap<number, Entry>(maxPorts)

  called({ server, serverPort }: Connection, calls = 1): void {
    if (server) this.#entry(serverPort).answered += calls
    else this.#entry(serverPort).asked += calls
  }

  refused(port: number): void {
    this.#entry(port).refused++
  }

  /** Undefined: nothing of late. */
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
