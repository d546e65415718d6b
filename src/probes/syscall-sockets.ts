import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { BoundedMap } from '../lib/bounded-map.ts'
import { isEnding, statFields } from '../lib/process-stat.ts'

/** Bytes of a table of sockets that are read, at most: some 400,000 sockets. */
const maxTableBytes = 64 * 2 ** 20
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
}

/** What descriptors are, from /proc. Reads a namespace's table at most once in a while, however often it is asked. */
export class ProcSockets {
  private readonly proc: string
  private readonly tables = new BoundedMap<string, Table>(64)

  constructor(proc = '/proc') {
    this.proc = proc
  }

  /**
   * The TCP socket behind a descriptor. `none`: it is something else. `gone`: there is no such process or descriptor any
   * more. `unread`: it is younger than the table, which is not to be read again yet.
   */
  find(pid: number, fd: number): FoundSocket | 'none' | 'gone' | 'unread' {
    const inode = this.inodeOf(pid, `${fd}`)
    if (inode === undefined) return 'gone'
    if (inode === 0) return 'none'
    const space = this.spaceOf(pid)
    if (space === undefined) return 'gone'
    let table = this.tables.get(space)
    let row = table?.rows.get(inode)
    if (row === undefined) {
      const now = performance.now()
      if (table !== undefined && now - table.atMs < rest * table.tookMs) return 'unread'
      // The kernel hands the table out in pages: a row may be missed while others come and go.
      for (let reads = 0; row === undefined && reads < 2; reads++) {
        table = this.read(pid)
        row = table.rows.get(inode)
      }
      this.tables.set(space, table!)
    }
    // Its descriptor may be another file by now.
    if (row === undefined) return this.inodeOf(pid, `${fd}`) === inode ? 'none' : 'gone'
    return { ...row, blocking: this.isBlocking(pid, fd) }
  }

  /** The process is on its way out: its descriptors are gone in a moment, however long the kernel takes for it. */
  isEnding(pid: number): boolean {
    try {
      return isEnding(statFields(readFileSync(`${this.proc}/${pid}/stat`, 'latin1'), 7))
    } catch {
      return false // it has ended
    }
  }

  /** Forgets what was read, as sockets come and go. */
  forget(): void {
    this.tables.clear()
  }

  /** Calls back for every TCP socket of every process, with what its ports tell of its side. */
  forEach(visit: (pid: number, fd: number, socket: FoundSocket, side: Side) => void): void {
    const ports = new Map<string, Set<number>>()
    const [first, last] = this.ephemeralPorts()
    const isEphemeral = (port: number) => port >= first && port <= last
    for (const name of list(this.proc)) {
      const pid = Number(name)
      if (!Number.isInteger(pid)) continue
      const space = this.spaceOf(pid)
      if (space === undefined) continue
      let table = this.tables.get(space)
      if (table === undefined) {
        table = this.read(pid)
        this.tables.set(space, table)
        const own = new Set<number>()
        for (const row of table.rows.values()) if (row.isListening) own.add(row.localPort)
        ports.set(space, own)
      }
      for (const fd of list(`${this.proc}/${pid}/fd`)) {
        const row = table.rows.get(this.inodeOf(pid, fd) ?? 0)
        if (row === undefined) continue
        const { localPort, peerPort } = row
        const side = ports.get(space)?.has(localPort)
          ? 'server'
          : isEphemeral(localPort) && !isEphemeral(peerPort)
            ? 'client'
            : 'unknown'
        visit(pid, Number(fd), { ...row, blocking: this.isBlocking(pid, Number(fd)) }, side)
      }
    }
  }

  /** First and last port that the kernel gives to clients (ip-sysctl). */
  private ephemeralPorts(): readonly [number, number] {
    try {
      const text = readFileSync(`${this.proc}/sys/net/ipv4/ip_local_port_range`, 'latin1')
      const [first = 0, last = 0] = text.split(/\s+/).map(Number)
      return [first, last]
    } catch {
      return [32_768, 60_999]
    }
  }

  /** Inode number of the socket behind a descriptor; 0: it is none. */
  private inodeOf(pid: number, fd: string): number | undefined {
    try {
      const link = readlinkSync(`${this.proc}/${pid}/fd/${fd}`)
      return link.startsWith('socket:[') ? Number.parseInt(link.slice('socket:['.length), 10) : 0
    } catch {
      return undefined // the process or the descriptor is gone
    }
  }

  private spaceOf(pid: number): string | undefined {
    try {
      return readlinkSync(`${this.proc}/${pid}/ns/net`)
    } catch {
      return undefined
    }
  }

  private isBlocking(pid: number, fd: number): boolean {
    try {
      const text = readFileSync(`${this.proc}/${pid}/fdinfo/${fd}`, 'latin1')
      const flags = /^flags:\s*([0-7]+)/m.exec(text)?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & nonBlocking) === 0
    } catch {
      return false
    }
  }

  private read(pid: number): Table {
    const beganMs = performance.now()
    const cpu = process.threadCpuUsage()
    const rows = new Map<number, SocketRow>()
    for (const name of ['tcp', 'tcp6']) {
      try {
        readTable(readFileSync(`${this.proc}/${pid}/net/${name}`), rows)
      } catch {
        // Without IPv6 there is no tcp6; without the process, neither.
      }
    }
    const atMs = performance.now()
    const { user, system } = process.threadCpuUsage(cpu)
    return { rows, atMs, tookMs: Math.min(atMs - beganMs, (user + system) / 1000 + tickMs) }
  }
}

/** Adds the rows of a table: `sl local_address rem_address st … inode`, numbers in hexadecimal but for the inode. */
export function readTable(bytes: Buffer, rows: Map<number, SocketRow>): void {
  const text = bytes.toString('latin1', 0, Math.min(bytes.length, maxTableBytes))
  for (const line of text.split('\n')) {
    const [, local, peer, state, , , , , , inode] = line.trim().split(/\s+/)
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

function list(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
