// TCP connections of a process, and whether they had traffic.

import { readlinkSync } from 'node:fs'
import { namesIn } from '../../foundation/lib/directory-names.ts'
import { linesOf } from '../../foundation/lib/file-lines.ts'
import { linkText } from '../../foundation/lib/optional-files.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { Attributes, askKernel, type Message, protocols } from '../../kernel/netlink.ts'
import { swapped } from '../../kernel/peer-user.ts'

/** An open TCP connection. */
export interface Connection {
  readonly localPort: number
  readonly peerPort: number
  /** Milliseconds since the last bytes in either direction; undefined if unknown. */
  readonly idleMs: number | undefined
  /** Bytes in both directions; undefined if unknown. */
  readonly bytes: number | undefined
}

const maxDescriptors = 16_384
const maxSockets = 20_000
const maxFileBytes = 4 * 1024 * 1024
/** Time slice before yielding, in milliseconds. */
const workMs = 2

/**
 * The established connections; `port` restricts them to those with that local port. In other network namespaces than
 * the agent's, only what /proc has. Takes about 2 µs per descriptor of the process and per socket, and yields in
 * between, except while the kernel answers.
 */
export async function connectionsOf(procDir: string, pid: number, port = 0): Promise<Connection[]> {
  const turn = new Turn(workMs)
  const inodes = await socketsOf(procDir, pid, turn)
  if (inodes.size === 0) return []
  const own = namespaceOf(procDir, 'self')
  if (own !== '' && namespaceOf(procDir, String(pid)) === own) {
    try {
      return asked(inodes, port)
    } catch {
      // Without the addon or sock_diag, /proc has fewer details.
    }
  }
  return listed(procDir, pid, inodes, port, turn)
}

async function socketsOf(procDir: string, pid: number, turn: Turn): Promise<ReadonlySet<number>> {
  const inodes = new Set<number>()
  for (const name of namesIn(`${procDir}/${pid}/fd`, maxDescriptors)) {
    try {
      const target = readlinkSync(`${procDir}/${pid}/fd/${name}`)
      if (target.startsWith('socket:[')) inodes.add(Number(target.slice(8, -1)))
    } catch {
      // It was closed in the meantime.
    }
    if (turn.isOver) await turn.next()
  }
  return inodes
}

function namespaceOf(procDir: string, pid: string): string {
  return linkText(`${procDir}/${pid}/ns/net`)
}

/** SOCK_DIAG_BY_FAMILY of sock_diag(7), and the attribute that has a `tcp_info`. */
const dumpByFamily = 20
const tcp = 6
const families = [2, 10]
const infoAttribute = 2
const established = 1
const closeWait = 8
/** Offsets of an answer (inet_diag_msg), and in a tcp_info, both of include/uapi/linux. */
const at = { localPort: 4, peerPort: 6, inode: 68, attributes: 72 }
const inInfo = { lastSentMs: 44, lastReceivedMs: 52, acked: 120, received: 128, size: 136 }

class Enough extends Error {}

function asked(inodes: ReadonlySet<number>, port: number): Connection[] {
  const found: Connection[] = []
  let seen = 0
  const attributes = new Attributes()
  const take = (socket: Message) => {
    // More would block the agent for too long; with a port there are rarely as many.
    if (++seen > maxSockets) throw new Enough()
    if (inodes.has(socket.u32(at.inode))) found.push(connectionOf(socket, attributes))
  }
  for (const family of families) {
    const payload = Buffer.alloc(56)
    payload[0] = family
    payload[1] = tcp
    payload[2] = 1 << (infoAttribute - 1)
    payload.writeUInt32LE((1 << established) | (1 << closeWait), 4)
    payload.writeUInt16BE(port, 8)
    try {
      askKernel(protocols.sockDiag, { type: dumpByFamily, payload }, take)
    } catch (error) {
      if (!(error instanceof Enough)) throw error
    }
  }
  return found
}

function connectionOf(socket: Message, attributes: Attributes): Connection {
  const localPort = swapped(socket.u16(at.localPort))
  const peerPort = swapped(socket.u16(at.peerPort))
  for (attributes.within(socket, at.attributes); attributes.next(); ) {
    if (attributes.type !== infoAttribute || attributes.length < inInfo.size) continue
    return {
      localPort,
      peerPort,
      idleMs: Math.min(attributes.u32(inInfo.lastSentMs), attributes.u32(inInfo.lastReceivedMs)),
      // The client's SYN counts as one byte.
      bytes: Math.max(0, attributes.u64(inInfo.acked) - 1) + attributes.u64(inInfo.received),
    }
  }
  return { localPort, peerPort, idleMs: undefined, bytes: undefined }
}

/** From /proc/PID/net/tcp (proc_pid_net(5)). */
async function listed(
  procDir: string,
  pid: number,
  inodes: ReadonlySet<number>,
  port: number,
  turn: Turn,
): Promise<Connection[]> {
  const found: Connection[] = []
  for (const file of ['tcp', 'tcp6'])
    for (const line of linesOf(`${procDir}/${pid}/net/${file}`, maxFileBytes)) {
      if (turn.isOver) await turn.next()
      const fields = line.trim().split(/ +/, 10)
      const state = Number.parseInt(fields[3] ?? '', 16)
      if (fields.length < 10 || (state !== established && state !== closeWait)) continue
      const localPort = portOf(fields[1]!)
      if ((port === 0 || localPort === port) && inodes.has(Number(fields[9])))
        found.push({ localPort, peerPort: portOf(fields[2]!), idleMs: undefined, bytes: undefined })
    }
  return found
}

function portOf(address: string): number {
  return Number.parseInt(address.slice(address.indexOf(':') + 1), 16)
}
