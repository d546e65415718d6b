import { firstListeningPorts, listeningPorts } from './listening-ports.ts'

/** Interval of searches for a process with many descriptors. */
const againMs = 10_000

interface Look {
  readonly atMs: number
  ports: readonly number[]
}

/**
 * Listening ports of processes, synchronously. For a process with many descriptors or sockets the first result is
 * partial; the rest is searched in turns, one process at a time.
 */
export class ListenedPorts {
  readonly #procDir: string
  /** By the caller's object for the process. */
  readonly #looks = new WeakMap<object, Look>()
  #last = Promise.resolve()

  constructor(procDir: string) {
    this.#procDir = procDir
  }

  /** `found`: called when an incomplete result becomes complete. */
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
        // It has ended; a new process with its number gets a new search.
      }
    })
    return [...ports, ...look.ports]
  }
}
