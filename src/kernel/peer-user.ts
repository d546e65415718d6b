// The user at the other end of a TCP connection within this host, as the kernel reports it for that socket.

import { closeSync, openSync, readSync } from 'node:fs'
import { isIP } from 'node:net'
import { askKernel, type Message, protocols } from './netlink.ts'

/** Both ends of a connection, from our side. */
export interface Ends {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
}

/** SOCK_DIAG_BY_FAMILY of sock_diag(7). */
const byFamily = 20
const tcp = 6
const inet = 2
const inet6 = 10
const established = 1
/** Offsets of an `inet_diag_msg` (include/uapi/linux/inet_diag.h). */
const at = { family: 0, state: 1, ports: 4, source: 8, destination: 24, user: 64, inode: 68, size: 72 }
const requestBytes = 56
/** The part of an `inet_diag_req_v2` that identifies the socket, up to the interface. */
const inRequest = { family: 0, protocol: 1, states: 4, ports: 8, source: 12, destination: 28, cookie: 48 }

/**
 * The user of the socket at the other end of a connection, in this process's user namespace; undefined if there is no
 * such socket in this network namespace, if it was closed, and if the kernel does not report it. The kernel reports the
 * user who created the socket, whoever holds it now. Takes some 10 µs.
 *
 * Only an established socket held by a process counts: for a closing one, one in TIME_WAIT, and a connection that was
 * not accepted, the kernel reports user 0, which would make any user root.
 */
export function peerUser(ends: Ends): number | undefined {
  const local = bytesOf(ends.localAddress)
  const peer = bytesOf(ends.remoteAddress)
  if (local === undefined || peer === undefined || local.length !== peer.length) return undefined
  try {
    return askedUser(local, ends.localPort, peer, ends.remotePort)
  } catch (error) {
    // There is no such socket. Any other error means that this kernel, or a seccomp filter, has no sock_diag.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && isKnown) return undefined
    return listedUser(local, ends.localPort, peer, ends.remotePort)
  }
}

/** The kernel has answered before: from now on ENOENT means the socket, not a missing sock_diag module. */
let isKnown = false

function askedUser(local: Buffer, localPort: number, peer: Buffer, peerPort: number): number | undefined {
  const payload = Buffer.alloc(requestBytes)
  payload[inRequest.family] = peer.length === 4 ? inet : inet6
  payload[inRequest.protocol] = tcp
  payload.writeUInt32LE(1 << established, inRequest.states)
  payload.writeUInt16BE(peerPort, inRequest.ports)
  payload.writeUInt16BE(localPort, inRequest.ports + 2)
  payload.set(peer, inRequest.source)
  payload.set(local, inRequest.destination)
  // INET_DIAG_NOCOOKIE: any socket with these addresses.
  payload.fill(0xff, inRequest.cookie, inRequest.cookie + 8)
  let user: number | undefined
  askKernel(protocols.sockDiag, { type: byFamily, dump: false, payload }, socket => {
    isKnown = true
    // Without a connection the kernel reports the listener of the port.
    if (isSocket(socket, peer, peerPort, local, localPort)) user = socket.u32(at.user)
  })
  return user
}

function isSocket(socket: Message, own: Buffer, ownPort: number, other: Buffer, otherPort: number): boolean {
  if (socket.length < at.size || socket.u8(at.state) !== established || socket.u32(at.inode) === 0)
    return false
  const of6 = socket.u8(at.family) === inet6
  return (
    swapped(socket.u16(at.ports)) === ownPort &&
    swapped(socket.u16(at.ports + 2)) === otherPort &&
    isAddress(socket.view(at.source), of6, own) &&
    isAddress(socket.view(at.destination), of6, other)
  )
}

/** An IPv6 socket may have an IPv4 connection, with IPv4-mapped addresses. */
function isAddress(bytes: Buffer, of6: boolean, wanted: Buffer): boolean {
  if (of6 && wanted.length === 4)
    return bytes.subarray(0, 12).equals(mapped) && bytes.subarray(12, 16).equals(wanted)
  return bytes.subarray(0, wanted.length).equals(wanted)
}

const mapped = Buffer.from('00000000000000000000ffff', 'hex')

/** 4 bytes for IPv4, also if IPv4-mapped, otherwise 16; undefined if it is no address, or has an interface. */
function bytesOf(address: string): Buffer | undefined {
  const bare = /^::ffff:(?=\d+\.)/i.test(address) ? address.slice(7) : address
  if (isIP(bare) === 4) return Buffer.from(bare.split('.').map(Number))
  if (isIP(bare) !== 6 || bare.includes('%') || bare.includes('.')) return undefined
  const [head = '', tail] = bare.split('::') as [string, string?]
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
  const first = groups(head)
  const last = tail === undefined ? [] : groups(tail)
  const bytes = Buffer.alloc(16)
  for (const [i, group] of first.entries()) bytes.writeUInt16BE(group, 2 * i)
  for (const [i, group] of last.entries()) bytes.writeUInt16BE(group, 16 - 2 * (last.length - i))
  return bytes
}

/** A port in network byte order, or back. */
export function swapped(value: number): number {
  return ((value & 0xff) << 8) | (value >> 8)
}

/** Maximum bytes of a table: some 1,700 sockets, which take the kernel 2 ms. Later ones are unknown. */
const mostTableBytes = 256 * 1024
/** Maximum reads of the tables per second, to bound their cost. */
const mostReadings = 20
let readingsOf = 0
let readings = 0

function listedUser(local: Buffer, localPort: number, peer: Buffer, peerPort: number): number | undefined {
  const second = Math.floor(performance.now() / 1000)
  if (second !== readingsOf) {
    readingsOf = second
    readings = 0
  }
  if (++readings > mostReadings) return undefined
  for (const [file, six] of [
    ['/proc/net/tcp', false],
    ['/proc/net/tcp6', true],
  ] as const) {
    if (peer.length === 16 && !six) continue
    const found = userInTable(tableOf(file), end(peer, peerPort, six), end(local, localPort, six))
    if (found !== undefined) return found
  }
  return undefined
}

/** The user of the established socket between two ends in /proc/net/tcp format; otherwise like `peerUser`. */
export function userInTable(table: string, own: string, other: string): number | undefined {
  const name = `: ${own} ${other} 01 `
  const begin = table.indexOf(name)
  if (begin < 0) return undefined
  const newline = table.indexOf('\n', begin)
  // Truncated by the limit.
  if (newline < 0) return undefined
  // After the state: queues, timer, retransmits, user, timeout, inode.
  const [, , , user = '', , inode = ''] = table
    .slice(begin + name.length, newline)
    .trim()
    .split(/ +/)
  return /^\d+$/.test(user) && Number(inode) > 0 ? Number(user) : undefined
}

function end(address: Buffer, port: number, six: boolean): string {
  const whole = six && address.length === 4 ? Buffer.concat([mapped, address]) : address
  let text = ''
  for (let i = 0; i < whole.length; i += 4) text += hex(whole.readUInt32LE(i), 8)
  return `${text}:${hex(port, 4)}`
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0')
}

function tableOf(file: string): string {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch {
    return '' // without /proc, or without this family, the user is unknown
  }
  try {
    const bytes = Buffer.allocUnsafe(mostTableBytes)
    let filled = 0
    for (let got = -1; got !== 0 && filled < bytes.length; filled += got)
      got = readSync(fd, bytes, filled, Math.min(bytes.length - filled, 16 * 1024), null)
    return bytes.toString('latin1', 0, filled)
  } finally {
    closeSync(fd)
  }
}
