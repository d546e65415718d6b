import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { ipText } from '../../foundation/lib/ip-text.ts'
import { counted } from '../../foundation/lib/small-tables.ts'
import type { Segment } from '../../foundation/model/stream.ts'
import { svcSyscallConnection, svcSyscallRole, svcSyscallState } from '../../kernel/gen/syscalls.ts'
import type { FoundSocket, ProcSockets, Side } from './syscall-sockets.ts'

/** Connections that are remembered, as many as the kernel side follows. */
const maxConnections = 65_536
/** A connection that is closed is told of soon. */
const looksIfGone = 2
/** A table of sockets is read again after a rest: for this one reading it may take 60 ms, as it does with 50,000 sockets. */
const waitIfUnreadMs = 1200
/** Descriptors from here on stand for sessions of TLS without a socket (bpf/include/syscalls-maps.h). */
const firstSession = 0xf0000
const perPid = 2 ** 31
const perFd = 2 ** 11

/** What the kernel side's number of a connection is made of. */
export function pidOf(connection: number): number {
  return Math.floor(connection / perPid)
}

export function fdOf(connection: number): number {
  return Math.floor((connection % perPid) / perFd)
}

/** `turn`: what tells the connection from others of this descriptor. */
export function connectionOf(pid: number, fd: number, turn: number): number {
  return pid * perPid + fd * perFd + (turn % perFd)
}

/** The kernel side's entry of a socket that is older than the programs. */
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

/** Both ends of a connection, as far as they are known. */
export interface Ends {
  readonly localAddress: string
  readonly localPort: number
  readonly peerAddress: string
  readonly peerPort: number
}

/**
 * What is to become of a segment. `later`: its ends may be known in a while. Whatever else its process does waits behind
 * it, as what a request was made for is told by the order of all that a process does.
 */
export type Verdict = 'pass' | 'drop' | 'later'

interface Known extends Ends {
  /** Undefined: as the segments say. */
  readonly blocking: boolean | undefined
  /** It is no TCP connection, or not to be followed. */
  off: boolean
}

/** Tells of segments between which ends they went, where the kernel side does not know. */
export class SyscallConnections {
  readonly #known = counted(
    new BoundedMap<number, Known>(maxConnections, connection => this.#uncount(connection)),
  )
  /** How many of each process are known. */
  readonly #counts = new Map<number, number>()
  readonly #told = counted(new BoundedMap<number, Ends>(4096))
  /** Connections of this batch whose ends may be known in the next one, and their processes. */
  readonly #late = new Set<number>()
  readonly #latePids = new Set<number>()
  /** How often such a connection was looked for, and since when (`performance.now()`). */
  readonly #looks = counted(new BoundedMap<number, { count: number; readonly sinceMs: number }>(4096))
  readonly #sockets: Pick<ProcSockets, 'find'>

  readonly #isOpen: (connection: number) => boolean

  /** `isOpen`: the descriptor is still that connection, as far as the kernel side knows. */
  constructor(sockets: Pick<ProcSockets, 'find'>, isOpen: (connection: number) => boolean) {
    this.#sockets = sockets
    this.#isOpen = isOpen
  }

  get size(): number {
    return this.#known.size
  }

  /** The kernel side saw both ends when the socket was shut. */
  report(connection: number, ends: Ends): void {
    this.#told.set(connection, ends)
  }

  /** A new batch of segments begins: what waited is looked for once more. */
  begin(): void {
    this.#late.clear()
    this.#latePids.clear()
  }

  /** What the process does waits for the next batch. */
  isLate(pid: number): boolean {
    return this.#latePids.has(pid)
  }

  /** Completes a segment, whose connection is to be dropped where it is not TCP as far as can be told. */
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
    // Its own ends are known, but those of an older one of its process are not.
    if (this.isLate(pid)) return 'later'
    segment.localAddress = known.localAddress
    segment.localPort = known.localPort
    segment.peerAddress = known.peerAddress
    segment.peerPort = known.peerPort
    if (known.blocking !== undefined) segment.blocking = known.blocking
    if (segment.closed) this.forget(connection)
    return known.off ? 'drop' : 'pass'
  }

  /** Nothing of it is passed on any more. */
  turnOff(connection: number): void {
    const known = this.#known.get(connection)
    if (known !== undefined) known.off = true
  }

  forget(connection: number): void {
    if (this.#known.delete(connection)) this.#uncount(connection)
    this.#told.delete(connection)
    this.#looks.delete(connection)
  }

  /** Calls back for the connections of a process on the descriptors `first` to `last`, which it may forget. */
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

  /** Undefined: it may be found later. */
  #find(segment: Segment): Known | undefined {
    const { localPort, peerPort, connection, joined, tls } = segment
    const local = addressOf(segment.localAddress)
    const peer = addressOf(segment.peerAddress)
    const here = { localPort, peerPort, peerAddress: peer, blocking: undefined, off: false }
    if (fdOf(connection) >= firstSession) return { ...here, localAddress: local }
    if ((localPort > 0 && peerPort > 0) || segment.protocol === 'dns')
      return { ...here, localAddress: local === '' && isLoopback(peer) ? peer : local }
    const ends = this.#told.get(connection)
    if (ends !== undefined) return { ...ends, blocking: undefined, off: false }
    let found = this.#sockets.find(pidOf(connection), fdOf(connection))
    // The descriptor may stand for the next connection by now.
    if (found !== 'gone' && found !== 'unread' && !this.#isOpen(connection)) found = 'gone'
    if (found === 'gone' || found === 'unread') {
      const now = performance.now()
      const looks = this.#looks.get(connection) ?? { count: 0, sinceMs: now }
      looks.count++
      this.#looks.set(connection, looks)
      if (found === 'gone' ? looks.count < looksIfGone : now - looks.sinceMs < waitIfUnreadMs)
        return undefined
      // What was recognised by its bytes alone may be a file, but not what is inside TLS.
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

/** '' for what is not known: the unspecified address. */
function addressOf(text: string): string {
  return text === '::' || text === '0.0.0.0' ? '' : text
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}
