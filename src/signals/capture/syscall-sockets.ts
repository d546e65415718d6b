import { readFileSync, readlinkSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { namesIn } from '../../foundation/lib/directory-names.ts'
import { linesOf } from '../../foundation/lib/file-lines.ts'
import { isEnding, statFields } from '../../foundation/lib/process-stat.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import { Turn } from '../../foundation/lib/turn.ts'

/** Maximum bytes of a socket table: about 400,000 sockets. */
const maxTableBytes = 64 * 2 ** 20
/**
 * Rows of a table between yields, and rows that are read without a yield, about 150 ms: records sent before the table
 * was read have no peer address.
 */
const stepRows = 128
const rowsAtOnce = 32_768
/** Milliseconds of work on a larger table before yielding. */
const workMs = 2
/** Maximum descriptors of a process. */
const maxDescriptors = 65_536
const listening = 10
const nonBlocking = 0o4000
/** Pause before a table is read again, as a multiple of the duration of the read. */
const rest = 20
/** The kernel accounts CPU time of a thread up to one clock tick late. */
const tickMs = 10

/** A TCP socket in /proc/<pid>/net/tcp{,6} (proc(5)). */
export interface SocketRow {
  /** 16 bytes; IPv4 as ::ffff:a.b.c.d. */
  readonly localBytes: Buffer
  readonly localPort: number
  readonly peerBytes: Buffer
  readonly peerPort: number
  readonly isListening: boolean
}

/** `blocking`: the descriptor is in blocking mode. */
export type FoundSocket = SocketRow & { readonly blocking: boolean }

export type Side = 'client' | 'server' | 'unknown'

interface Table {
  readonly rows: ReadonlyMap<number, SocketRow>
  /** Time of the read by `performance.now()`. `tookMs`: its duration, without CPU time of others. */
  readonly atMs: number
  readonly tookMs: number
  /** Inode for which it was read; if missing, it is not a TCP socket. */
  readonly asked: number
}

/** Approximate memory of a row. */
const rowBytes = 200

/**
 * Identifies descriptors by /proc. Limits how often a namespace's table is read; reads large tables in turns, as any
 * user can open 50,000 sockets.
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
   * TCP socket of a descriptor. `none`: not a TCP socket. `gone`: the process or descriptor no longer exists. `unread`:
   * newer than the table, which is being read or must not be read again yet.
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
    // The descriptor may be another file by now.
    if (row === undefined) return this.#inodeOf(pid, `${fd}`) === inode ? 'none' : 'gone'
    return { ...row, blocking: this.#isBlocking(pid, fd) }
  }

  /** Whether the process is exiting: its descriptors will be closed soon, however long the kernel takes. */
  isEnding(pid: number): boolean {
    try {
      return isEnding(statFields(readFileSync(`${this.#proc}/${pid}/stat`, 'latin1'), 7))
    } catch {
      return false // it has ended
    }
  }

  /** Clears cached tables, as sockets change. */
  forget(): void {
    this.#tables.clear()
  }

  /** Calls `visit` for every TCP socket of every process, with its side as guessed from the ports, in small steps. */
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

  /** First and last port for clients (ip-sysctl). */
  #ephemeralPorts(): readonly [number, number] {
    try {
      const text = readFileSync(`${this.#proc}/sys/net/ipv4/ip_local_port_range`, 'latin1')
      const [first = 0, last = 0] = text.split(/\s+/).map(Number)
      return [first, last]
    } catch {
      return [32_768, 60_999]
    }
  }

  /** Inode number of the socket of a descriptor; 0 if it is not a socket. */
  #inodeOf(pid: number, fd: string): number | undefined {
    try {
      const link = readlinkSync(`${this.#proc}/${pid}/fd/${fd}`)
      return link.startsWith('socket:[') ? Number.parseInt(link.slice('socket:['.length), 10) : 0
    } catch {
      return undefined // process or descriptor is gone
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

  /** Reads a namespace's table; undefined if it is so large that the rest is read in turns. */
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
      // The next lookup in this namespace reads the table again.
    } finally {
      this.#reading.delete(space)
    }
  }

  /** Reads a namespace's table in small steps, for the socket `asked`; 0 for none. */
  *#steps(space: string, pid: number, asked: number): Generator<void, Table> {
    const rows = new Map<number, SocketRow>()
    let wallMs = 0
    let cpuMs = 0
    // The kernel returns the table in pages, so a row may be missed while others change.
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
          lines.return() // the consumer may have stopped
        }
      }
    const tookMs = Math.min(wallMs, cpuMs + tickMs)
    const table = { rows, atMs: performance.now(), tookMs, asked }
    this.#tables.set(space, table)
    return table
  }
}

/**
 * Adds the next rows of a table: `sl local_address rem_address st … inode`, in hexadecimal except for the inode. False:
 * no more rows.
 */
export function readTable(lines: Iterator<string>, rows: Map<number, SocketRow>, most: number): boolean {
  for (let i = 0; i < most; i++) {
    const { done, value: line } = lines.next()
    if (done) return false
    const [, local, peer, state, , , , , , inode] = line.trim().split(/\s+/, 10)
    if (inode === undefined || !local?.includes(':') || !peer?.includes(':')) continue
    const number = Number(inode)
    if (!(number > 0)) continue // no descriptor refers to it any more
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

/** Words of four bytes, each in host byte order: `0100007F` is 127.0.0.1. */
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
