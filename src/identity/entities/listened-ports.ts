import { firstListeningPorts, listeningPorts } from './listening-ports.ts'

/** How often a process with many descriptors is looked at again. */
const againMs = 10_000

interface Look {
  readonly atMs: number
  ports: readonly number[]
}

/**
 * The ports that processes listen at, for whoever cannot wait. Of a process with many descriptors, or among many sockets,
 * only a part is found at once: the rest is looked for in turns, one process at a time.
 */
export class ListenedPorts {
  readonly #procDir: string
  /** By what is known of such a process. */
  readonly #looks = new WeakMap<object, Look>()
  #last = Promise.resolve()

  constructor(procDir: string) {
    this.#procDir = procDir
  }

  /** `found`: called when all of them are known, where that was not so. */
  of(process: object, pid: number, nowMs: number, found: () => void): readonly number[] {
    const { ports, isWhole } = firstListeningPorts(this.#procDir, pid)
    if (isWhole) return ports
    const before = this.#looks.get(process)
    if (before !== undefined && nowMs - before.atMs < againMs) return [...ports, ...before.ports]
    const look: Look = { atMs: nowMs, ports: before?.ports ?? [] }
    this.#looks.set(process, look)
    this.#last = this.#last.then(async () => {
      try {
        look.ports = await listeningPorts(this.#procDir, pid)
        found()
      } catch {
        // It has ended; whoever takes its number is looked at anew.
      }
    })
    return [...ports, ...look.ports]
  }
}
