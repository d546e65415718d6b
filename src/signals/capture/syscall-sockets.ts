import { readFileSync, readlinkSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { namesIn } from '../../foundation/lib/directory-names.ts'
import { linesOf } from '../../foundation/lib/file-lines.ts'
import { isEnding, statFields } from '../../foundation/lib/process-stat.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import { Turn } from '../../foundation/lib/turn.ts'

/** Bytes of a table of sockets that are read, at most: some 400,000 sockets. */
const maxTableBytes = 64 * 2 ** 20
/**
 * Rows of a table between two chances for others to work, and those that are read at once, some 150 ms: what is told before its
 * table was read has no address of its peer.
 */
const stepRows = 128
const rowsAtOnce = 32_768
/** So long the reading of a larger table goes on before it lets others work. */
const workMs = 2
/** Descriptors of a process that are looked at. */
const maxDescriptors = 65_536
const listening = 10
const nonBlocking = 0o4000
/** Tables are read again at the earliest after so many times the time that reading them took. */
const rest = 20
/** The kernel tells what CPU time a thread took late, by a tick of its clock at most. */
const tickMs = 10

/** A TCP socket as /proc/<pid>/net/tcp{,6} has it (proc(5)). */
export interface SocketRow {
  /** 16 bytes; IPv4 as ::ffff:a.b.c.d. */
  readonly localBytes: Buffer
  readonly localPort: number
  readonly peerBytes: Buffer
  readonly peerPort: number
  readonly isListening: boolean
}

/** `blocking`: the descriptor is not in non-blocking mode. */
export type FoundSocket = SocketRow & { readonly blocking: boolean }

export type Side = 'client' | 'server' | 'unknown'

interface Table {
  readonly rows: ReadonlyMap<number, SocketRow>
  /** Of `performance.now()`: when it was read. `tookMs`: how long that took, without what others had of the CPU meanwhile. */
  readonly atMs: number
  readonly tookMs: number
  /** The inode for which it was read: where it is not in it, it is no TCP socket. */
  readonly asked: number
}

/** Of a socket's row in memory, about. */
const rowBytes = 200

/**
 * What descriptors are, from /proc. Reads a namespace's table at most once in a while, however often it is asked; a large
 * one in turns, as any user can have 50,000 sockets.
 */
export class ProcSockets {
  readonly #proc: string
  readonly #tables = small(
    new BoundedMap<string, Table>(64, undefined, (_, { rows }) => rows.size * rowBytes),
  )
  /** Namespaces whose tables are being read. */
  readonly #reading = new Set<string>()

  constructor(proc = '/proc') {
    this.#proc = proc
  }

  /**
   * The TCP socket behind a descriptor. `none`: it is something else. `gone`: there is no such process or descriptor any
   * more. `unread`: it is younger than the table, which is not to be read again yet, or is being read.
   */
  find(pid: number, fd: number): FoundSocket | 'none' | 'gone' | 'unread' {
    const inode = this.#inodeOf(pid, `${fd}`)
    if (inode === undefined) return 'gone'
    if (inode === 0) return 'none'
    const space = this.#spaceOf(pid)
    if (space === undefined) return 'gone'
    let table = this.#tables.get(space)
    let row = table?.rows.get(inode)
    if (row === undefined && table?.asked !== inode) {
      if (this.#reading.has(space)) return 'unread'
      const now = performance.now()
      if (table !== undefined && now - table.atMs < rest * table.tookMs) return 'unread'
      table = this.#readAtOnce(space, pid, inode)
      if (table === undefined) return 'unread'
      row = table.rows.get(inode)
    }
    // Its descriptor may be another file by now.
    if (row === undefined) return this.#inodeOf(pid, `${fd}`) === inode ? 'none' : 'gone'
    return { ...row, blocking: this.#isBlocking(pid, fd) }
  }

  /** The process is on its way out: its descriptors are gone in a moment, however long the kernel takes for it. */
  isEnding(pid: number): boolean {
    try {
      return isEnding(statFields(readFileSync(`${this.#proc}/${pid}/stat`, 'latin1'), 7))
    } catch {
      return false // it has ended
    }
  }

  /** Forgets what was read, as sockets come and go. */
  forget(): void {
    this.#tables.clear()
  }

  /** Calls back for every TCP socket of every process, with what its ports tell of its side, in small steps. */
  *forEach(visit: (pid: number, fd: number, socket: FoundSocket, side: Side) => void): Generator<void> {
    const ports = new Map<string, Set<number>>()
    const [first, last] = this.#ephemeralPorts()
    const isEphemeral = (port: number) => port >= first && port <= last
    for (const name of namesIn(this.#proc)) {
      const pid = Number(name)
      if (!Number.isInteger(pid)) continue
      yield
      const space = this.#spaceOf(pid)
      if (space === undefined) continue
      const { rows } = this.#tables.get(space) ?? (yield* this.#steps(space, pid, 0))
      let own = ports.get(space)
      if (own === undefined) {
        own = new Set()
        for (const row of rows.values()) if (row.isListening) own.add(row.localPort)
        ports.set(space, own)
      }
      for (const fd of namesIn(`${this.#proc}/${pid}/fd`, maxDescriptors)) {
        const row = rows.get(this.#inodeOf(pid, fd) ?? 0)
        if (row !== undefined) {
          const { localPort, peerPort } = row
          const side = own.has(localPort)
            ? 'server'
            : isEphemeral(localPort) && !isEphemeral(peerPort)
              ? 'client'
              : 'unknown'
          visit(pid, Number(fd), { ...row, blocking: this.#isBlocking(pid, Number(fd)) }, side)
        }
        yield
      }
    }
  }

  /** First and last port that the kernel gives to clients (ip-sysctl). */
  #ephemeralPorts(): readonly [number, number] {
    try {
      const text = readFileSync(`${this.#proc}/sys/net/ipv4/ip_local_port_range`, 'latin1')
      const [first = 0, last = 0] = text.split(/\s+/).map(Number)
      return [first, last]
    } catch {
      return [32_768, 60_999]
    }
  }

  /** Inode number of the socket behind a descriptor; 0: it is none. */
  #inodeOf(pid: number, fd: string): number | undefined {
    try {
      const link = readlinkSync(`${this.#proc}/${pid}/fd/${fd}`)
      return link.startsWith('socket:[') ? Number.parseInt(link.slice('socket:['.length), 10) : 0
    } catch {
      return undefined // the process or the descriptor is gone
    }
  }

  #spaceOf(pid: number): string | undefined {
    try {
      return readlinkSync(`${this.#proc}/${pid}/ns/net`)
    } catch {
      return undefined
    }
  }

  #isBlocking(pid: number, fd: number): boolean {
    try {
      const text = readFileSync(`${this.#proc}/${pid}/fdinfo/${fd}`, 'latin1')
      const flags = /^flags:\s*([0-7]+)/m.exec(text)?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & nonBlocking) === 0
    } catch {
      return false
    }
  }

  /** Reads a namespace's table; undefined where it is so large that the rest of it is read in turns. */
  #readAtOnce(space: string, pid: number, inode: number): Table | undefined {
    const steps = this.#steps(space, pid, inode)
    for (let rows = 0; rows < rowsAtOnce; rows += stepRows) {
      const step = steps.next()
      if (step.done) return step.value
    }
    this.#reading.add(space)
    void this.#readOn(space, steps)
    return undefined
  }

  async #readOn(space: string, steps: Generator<void, Table>): Promise<void> {
    const turn = new Turn(workMs)
    try {
      while (!steps.next().done) if (turn.isOver) await turn.next()
    } catch {
      // The next socket of it that is asked for has it read anew.
    } finally {
      this.#reading.delete(space)
    }
  }

  /** Reads a namespace's table in small steps, for a socket that is asked for; 0 for none. */
  *#steps(space: string, pid: number, asked: number): Generator<void, Table> {
    const rows = new Map<number, SocketRow>()
    let wallMs = 0
    let cpuMs = 0
    // The kernel hands the table out in pages: a row may be missed while others come and go.
    for (let reads = 0; reads < 2 && (reads === 0 || (asked !== 0 && !rows.has(asked))); reads++)
      for (const name of ['tcp', 'tcp6']) {
        const lines = linesOf(`${this.#proc}/${pid}/net/${name}`, maxTableBytes)
        try {
          for (let more = true; more; ) {
            const beganMs = performance.now()
            const cpu = process.threadCpuUsage()
            more = readTable(lines, rows, stepRows)
            const { user, system } = process.threadCpuUsage(cpu)
            wallMs += performance.now() - beganMs
            cpuMs += (user + system) / 1000
            if (more) yield
          }
        } finally {
          lines.return() // whoever asks may have given up
        }
      }
    const tookMs = Math.min(wallMs, cpuMs + tickMs)
    const table = { rows, atMs: performance.now(), tookMs, asked }
    this.#tables.set(space, table)
    return table
  }
}

/**
 * Adds the next rows of a table: `sl local_address rem_address st … inode`, numbers in hexadecimal but for the inode.
 * False: there are no more.
 */
export function readTable(lines: Iterator<string>, rows: Map<number, SocketRow>, most: number): boolean {
  for (let i = 0; i < most; i++) {
    const { done, value: line } = lines.next()
    if (done) return false
    const [, local, peer, state, , , , , , inode] = line.trim().split(/\s+/, 10)
    if (inode === undefined || !local?.includes(':') || !peer?.includes(':')) continue
    const number = Number(inode)
    if (!(number > 0)) continue // a socket that no descriptor stands for any more
    rows.set(number, {
      localBytes: addressOf(local),
      localPort: portOf(local),
      peerBytes: addressOf(peer),
      peerPort: portOf(peer),
      isListening: Number.parseInt(state!, 16) === listening,
    })
  }
  return true
}

/** Words of four bytes, each in the host's order: `0100007F` is 127.0.0.1. */
function addressOf(end: string): Buffer {
  const address = Buffer.alloc(16)
  const bytes = Buffer.from(end.slice(0, end.indexOf(':')), 'hex')
  if (bytes.length === 16) return bytes.swap32()
  if (bytes.length === 4) bytes.swap32().copy(address, 12)
  address.fill(0xff, 10, 12)
  return address
}

function portOf(end: string): number {
  return Number.parseInt(end.slice(end.indexOf(':') + 1), 16)
}
