import { isIP } from 'node:net'
import { linkText, sortedNames, textOfFile } from './optional-files.ts'

/** The process that listens on a TCP port. */
export interface PortHolder {
  readonly pid: number
  /** Its executable's short name. */
  readonly name: string
}

/** Finds the process that listens on a port of this host, if /proc permits (other users' descriptors need root). */
export function portHolder(port: number, proc = '/proc'): PortHolder | undefined {
  const sockets = new Set<string>()
  for (const table of ['tcp', 'tcp6']) {
    for (const { inode } of listeners(textOfFile(`${proc}/net/${table}`), port))
      sockets.add(`socket:[${inode}]`)
  }
  if (sockets.size === 0) return undefined
  for (const pid of sortedNames(proc)) {
    if (!/^\d+$/.test(pid)) continue
    const fds = `${proc}/${pid}/fd`
    if (!sortedNames(fds).some(fd => sockets.has(linkText(`${fds}/${fd}`)))) continue
    return { pid: Number(pid), name: textOfFile(`${proc}/${pid}/comm`).trim() || 'unknown' }
  }
  return undefined
}

/**
 * The users who created the sockets that listen on a port of an IPv4 address of this host, or of any address if `host`
 * is not an IPv4 address. A creator may pass a socket on, so its current holder does not reveal who reads the data.
 */
export function listeningUsers(port: number, host: string, proc = '/proc'): number[] {
  const octets = isIP(host) === 4 ? Buffer.from(host.split('.').map(Number)) : undefined
  // The kernel's format: four bytes as one number in host byte order.
  const wanted = octets?.readUInt32LE().toString(16).toUpperCase().padStart(8, '0')
  const takes = (address: string) =>
    wanted === undefined || /^0+$/.test(address) || address.slice(-8) === wanted
  return ['tcp', 'tcp6']
    .flatMap(table => listeners(textOfFile(`${proc}/net/${table}`), port))
    .flatMap(({ address, user }) => (takes(address) ? [user] : []))
}

/** A socket that listens. */
export interface Listener {
  readonly inode: string
  /** User who created it. */
  readonly user: number
  /** In the kernel's format. */
  readonly address: string
}

/** The sockets that listen on a port, from the text of /proc/net/tcp (proc_pid_net(5)). */
export function listeners(table: string, port: number): Listener[] {
  const found: Listener[] = []
  for (const line of table.split('\n')) {
    const fields = line.trim().split(/\s+/)
    const [, local = '', , state, , , , user, , inode] = fields
    const [address = '', at = ''] = local.split(':')
    if (state !== '0A' || Number.parseInt(at, 16) !== port) continue
    if (inode !== undefined) found.push({ inode, user: Number(user), address })
  }
  return found
}
