import { namesIn } from '../../foundation/lib/directory-names.ts'
import { linesOf } from '../../foundation/lib/file-lines.ts'
import { linkText } from '../../foundation/lib/optional-files.ts'
import { Turn } from '../../foundation/lib/turn.ts'

/** State of a listening socket in /proc/net/tcp (include/net/tcp_states.h). */
const listening = '0A'
const maxProcesses = 10_000
/** Milliseconds of work before yielding. */
const workMs = 2
/** Descriptors or sockets per step. */
const stepSize = 32
/** Maximum bytes read of a socket table; listening sockets are at its beginning. */
const maxTableBytes = 16 * 2 ** 20

/** Limits of one search. */
interface Bounds {
  /** Maximum descriptors of one process. */
  readonly descriptors: number
  /** Maximum per process after `allDescriptors` have been read. */
  readonly fewDescriptors: number
  readonly allDescriptors: number
  /** Maximum listening sockets of one network namespace, and of all. */
  readonly listeners: number
  readonly allListeners: number
}

const bounds: Bounds = {
  descriptors: 16_384,
  fewDescriptors: 256,
  allDescriptors: 500_000,
  listeners: 16_384,
  allListeners: 131_072,
}
/** Limits for a search of a few milliseconds. */
const few: Bounds = { ...bounds, descriptors: 1024, listeners: 1024 }

/** TCP ports that a process listens on, in ascending order; empty if it has ended or is not readable. */
export function listeningPorts(procDir: string, pid: number): Promise<readonly number[]> {
  return inTurns(new Look(procDir, bounds).portsOf(pid))
}

/**
 * The same, synchronously and limited to a few milliseconds. `isWhole`: the result is complete, as for nearly all
 * processes.
 */
export function firstListeningPorts(
  procDir: string,
  pid: number,
): { readonly ports: readonly number[]; readonly isWhole: boolean } {
  const look = new Look(procDir, few)
  const steps = look.portsOf(pid)
  for (;;) {
    const step = steps.next()
    if (step.done) return { ports: step.value, isWhole: !look.isCut }
  }
}

/** Processes that listen on a TCP port. */
export async function listenersAt(procDir: string, port: number): Promise<number[]> {
  return [...(await allListeners(procDir))].filter(([, ports]) => ports.includes(port)).map(([pid]) => pid)
}

/**
 * TCP ports that each process of the host listens on, in any network namespace; at most 10,000 processes. Takes about
 * 20 µs per process and 2 µs per descriptor, and yields in between.
 */
export function allListeners(procDir: string): Promise<Map<number, readonly number[]>> {
  return inTurns(new Look(procDir, bounds).all())
}

/** Whether any process, visible or not, listens on a TCP port in the agent's own network namespace. */
export function isListenedAt(procDir: string, port: number): Promise<boolean> {
  return inTurns(new Look(procDir, bounds).isOpen(port))
}

async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  const turn = new Turn(workMs)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    if (turn.isOver) await turn.next()
  }
}

/** Ports of listening sockets by inode number. */
type Sockets = ReadonlyMap<number, number>

/** One search in small steps: any user can create a million descriptors or sockets. */
class Look {
  /** A limit was reached. */
  isCut = false
  readonly #procDir: string
  readonly #bounds: Bounds
  readonly #namespaces = new Map<string, Sockets>()
  #descriptorsLeft: number
  #listenersLeft: number

  constructor(procDir: string, bounds: Bounds) {
    this.#procDir = procDir
    this.#bounds = bounds
    this.#descriptorsLeft = bounds.allDescriptors
    this.#listenersLeft = bounds.allListeners
  }

  *all(): Generator<void, Map<number, readonly number[]>> {
    const found = new Map<number, readonly number[]>()
    let looked = 0
    for (const name of namesIn(this.#procDir)) {
      if (!/^\d+$/.test(name)) continue
      if (++looked > maxProcesses) break
      const ports = yield* this.portsOf(Number(name))
      if (ports.length > 0) found.set(Number(name), ports)
      yield
    }
    return found
  }

  *portsOf(pid: number): Generator<void, readonly number[]> {
    const process = `${this.#procDir}/${pid}`
    const namespace = linkText(`${process}/ns/net`)
    // A kernel thread, or a process that ended.
    if (namespace === '') return []
    let sockets = this.#namespaces.get(namespace)
    if (sockets === undefined) {
      sockets = yield* this.#socketsSeenBy(pid)
      this.#namespaces.set(namespace, sockets)
    }
    if (sockets.size === 0) return []
    const { descriptors, fewDescriptors } = this.#bounds
    const most = this.#descriptorsLeft > 0 ? descriptors : fewDescriptors
    const found = new Set<number>()
    let looked = 0
    for (const fd of namesIn(`${process}/fd`, most)) {
      const target = linkText(`${process}/fd/${fd}`)
      const port = target.startsWith('socket:[') ? sockets.get(Number(target.slice(8, -1))) : undefined
      if (port !== undefined) found.add(port)
      if (++looked % stepSize === 0) yield
    }
    this.#descriptorsLeft -= looked
    this.isCut ||= looked === most
    return [...found].sort((a, b) => a - b)
  }

  *isOpen(port: number): Generator<void, boolean> {
    for (const file of ['tcp', 'tcp6'])
      for (const row of listenersIn(`${this.#procDir}/net/${file}`)) {
        if (row?.port === port) return true
        yield
      }
    return false
  }

  /** Sockets of the process's network namespace. */
  *#socketsSeenBy(pid: number): Generator<void, Sockets> {
    const ports = new Map<number, number>()
    const most = Math.min(this.#bounds.listeners, this.#listenersLeft)
    let looked = 0
    for (const file of ['tcp', 'tcp6'])
      for (const row of listenersIn(`${this.#procDir}/${pid}/net/${file}`)) {
        if (ports.size >= most) {
          this.isCut = true
          break
        }
        if (row !== undefined) ports.set(row.inode, row.port)
        if (++looked % stepSize === 0) yield
      }
    this.#listenersLeft -= ports.size
    return ports
  }
}

/**
 * Listening sockets of a table; undefined for other lines. The kernel lists listening sockets first
 * (net/ipv4/tcp_ipv4.c, tcp_get_idx), so the rest is not read.
 */
function* listenersIn(path: string): Generator<{ port: number; inode: number } | undefined, void> {
  // "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode" (proc_pid_net(5))
  for (const line of linesOf(path, maxTableBytes)) {
    const fields = line.trim().split(/ +/, 10)
    if (fields[0] === 'sl') continue
    if (fields[3] !== listening) return
    const local = fields[1]!
    const port = Number.parseInt(local.slice(local.indexOf(':') + 1), 16)
    yield port >= 0 && port <= 0xffff ? { port, inode: Number(fields[9]) } : undefined
  }
}
