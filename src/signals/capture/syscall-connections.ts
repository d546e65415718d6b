import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { ipText, isLoopback } from '../../foundation/lib/ip-text.ts'
import { counted } from '../../foundation/lib/small-tables.ts'
import type { Segment } from '../../foundation/model/stream.ts'
import { svcSyscallConnection, svcSyscallRole, svcSyscallState } from '../../kernel/gen/syscalls.ts'
import type { FoundSocket, ProcSockets, Side } from './syscall-sockets.ts'

/** Maximum known connections, equal to the kernel side's limit. */
const maxConnections = 65_536
/** A closed connection is reported soon. */
const looksIfGone = 2
/** Maximum wait for a newer socket table: a table is read again after 20 times its read time, 60 ms with 50,000 sockets. */
const waitIfUnreadMs = 1200
/** Descriptors from here on represent TLS sessions without a socket (bpf/include/syscalls-maps.h). */
const firstSession = 0xf0000
const perPid = 2 ** 31
const perFd = 2 ** 11

/** Process number in the kernel side's number of a connection. */
export function pidOf(connection: number): number {
  return Math.floor(connection / perPid)
}

export function fdOf(connection: number): number {
  return Math.floor((connection % perPid) / perFd)
}

/** `turn` distinguishes connections on the same descriptor. */
export function connectionOf(pid: number, fd: number, turn: number): number {
  return pid * perPid + fd * perFd + (turn % perFd)
}

/** Kernel side entry for a socket opened before the programs were loaded. */
export function connectionBytes(connection: number, socket: FoundSocket, side: Side): Buffer {
  const value = Buffer.alloc(svcSyscallConnection.size)
  value.writeBigUInt64LE(BigInt(connection), svcSyscallConnection.id)
  value.writeUInt16LE(socket.localPort, svcSyscallConnection.localPort)
  value.writeUInt16LE(socket.peerPort, svcSyscallConnection.peerPort)
  value.set(socket.localBytes, svcSyscallConnection.localAddress)
  value.set(socket.peerBytes, svcSyscallConnection.peerAddress)
  value[svcSyscallConnection.state] = svcSyscallState.indexOf(socket.isListening ? 'listening' : 'unknown')
  value[svcSyscallConnection.role] = svcSyscallRole.indexOf(side)
  value[svcSyscallConnection.joined] = 1
  value[svcSyscallConnection.known] = 1
  value[svcSyscallConnection.blocking] = socket.blocking ? 1 : 0
  return value
}

/** Known ends of a connection. */
export interface Ends {
  readonly localAddress: string
  readonly localPort: number
  readonly peerAddress: string
  readonly peerPort: number
}

/**
 * Decision about a segment. `later`: its ends may be known in the next batch; all later records of the process wait
 * too, as their order links outgoing to incoming requests.
 */
export type Verdict = 'pass' | 'drop' | 'later'

interface Known extends Ends {
  /** Undefined: as in the segments. */
  readonly blocking: boolean | undefined
  /** Not a TCP connection, or not to be followed. */
  off: boolean
}

/** Finds the ends of connections that the kernel side does not know. */
export class SyscallConnections {
  readonly #known = counted(
    new BoundedMap<number, Known>(maxConnections, connection => this.#uncount(connection)),
  )
  /** Number of known connections by process. */
  readonly #counts = new Map<number, number>()
  readonly #reported = counted(new BoundedMap<number, Ends>(4096))
  /** Connections of this batch without known ends, and their processes. */
  readonly #late = new Set<number>()
  readonly #latePids = new Set<number>()
  /** Number of searches for such a connection, and the time of the first (`performance.now()`). */
  readonly #looks = counted(new BoundedMap<number, { count: number; readonly sinceMs: number }>(4096))
  readonly #sockets: Pick<ProcSockets, 'find'>

  readonly #isOpen: (connection: number) => boolean

  /** `isOpen`: whether the kernel side still has this connection on its descriptor. */
  constructor(sockets: Pick<ProcSockets, 'find'>, isOpen: (connection: number) => boolean) {
    this.#sockets = sockets
    this.#isOpen = isOpen
  }

  get size(): number {
    return this.#known.size
  }

  /** Stores ends that the kernel side saw at the shutdown of the socket. */
  report(connection: number, ends: Ends): void {
    this.#reported.set(connection, ends)
  }

  /** Starts a new batch of segments: pending connections are searched again. */
  begin(): void {
    this.#late.clear()
    this.#latePids.clear()
  }

  /** Whether records of the process wait for the next batch. */
  isLate(pid: number): boolean {
    return this.#latePids.has(pid)
  }

  /** Adds the ends to a segment. The verdict is `drop` if the connection is not TCP as far as is known. */
  complete(segment: Segment): Verdict {
    const { connection } = segment
    if (this.#late.has(connection)) return 'later'
    const pid = pidOf(connection)
    let known = this.#known.get(connection)
    if (known === undefined) {
      if (segment.closed) return this.isLate(pid) ? 'later' : 'pass'
      known = this.#find(segment)
      if (known === undefined) {
        this.#late.add(connection)
        this.#latePids.add(pid)
        return 'later'
      }
      this.#looks.delete(connection)
      this.#known.set(connection, known)
      this.#counts.set(pid, (this.#counts.get(pid) ?? 0) + 1)
    }
    // Its own ends are known, but an older connection of its process still waits.
    if (this.isLate(pid)) return 'later'
    segment.localAddress = known.localAddress
    segment.localPort = known.localPort
    segment.peerAddress = known.peerAddress
    segment.peerPort = known.peerPort
    if (known.blocking !== undefined) segment.blocking = known.blocking
    if (segment.closed) this.forget(connection)
    return known.off ? 'drop' : 'pass'
  }

  /** Drops all further segments of a connection. */
  turnOff(connection: number): void {
    const known = this.#known.get(connection)
    if (known !== undefined) known.off = true
  }

  forget(connection: number): void {
    if (this.#known.delete(connection)) this.#uncount(connection)
    this.#reported.delete(connection)
    this.#looks.delete(connection)
  }

  /** Calls `visit` for the connections of a process on descriptors `first` to `last`; `visit` may forget them. */
  forEachOf(pid: number, first: number, last: number, visit: (connection: number) => void): void {
    if (!this.#counts.has(pid)) return
    this.#known.forEach((_known, connection) => {
      if (pidOf(connection) !== pid) return
      const fd = fdOf(connection)
      if (fd >= first && fd <= last) visit(connection)
    })
  }

  #uncount(connection: number): void {
    const pid = pidOf(connection)
    const count = (this.#counts.get(pid) ?? 0) - 1
    if (count > 0) this.#counts.set(pid, count)
    else this.#counts.delete(pid)
  }

  /** Undefined: may be found later. */
  #find(segment: Segment): Known | undefined {
    const { localPort, peerPort, connection, joined, tls } = segment
    const local = addressOf(segment.localAddress)
    const peer = addressOf(segment.peerAddress)
    const here = { localPort, peerPort, peerAddress: peer, blocking: undefined, off: false }
    if (fdOf(connection) >= firstSession) return { ...here, localAddress: local }
    if ((localPort > 0 && peerPort > 0) || segment.protocol === 'dns')
      return { ...here, localAddress: local === '' && isLoopback(peer) ? peer : local }
    const ends = this.#reported.get(connection)
    if (ends !== undefined) return { ...ends, blocking: undefined, off: false }
    let found = this.#sockets.find(pidOf(connection), fdOf(connection))
    // The descriptor may already belong to the next connection.
    if (found !== 'gone' && found !== 'unread' && !this.#isOpen(connection)) found = 'gone'
    if (found === 'gone' || found === 'unread') {
      const now = performance.now()
      const looks = this.#looks.get(connection) ?? { count: 0, sinceMs: now }
      looks.count++
      this.#looks.set(connection, looks)
      if (found === 'gone' ? looks.count < looksIfGone : now - looks.sinceMs < waitIfUnreadMs)
        return undefined
      // A connection recognised only by its bytes may be a file, unless it is inside TLS.
      return { ...here, localAddress: local, off: joined && !tls }
    }
    if (found === 'none') return { ...here, localAddress: local, off: !tls }
    return knownOf(found, joined)
  }
}

function knownOf(found: FoundSocket, joined: boolean): Known {
  const { localBytes, localPort, peerBytes, peerPort, blocking, isListening } = found
  return {
    localAddress: ipText(localBytes),
    localPort,
    peerAddress: ipText(peerBytes),
    peerPort,
    blocking: joined ? blocking : undefined,
    off: isListening,
  }
}

/** '' for the unspecified address, which means unknown. */
function addressOf(text: string): string {
  return text === '::' || text === '0.0.0.0' ? '' : text
}
