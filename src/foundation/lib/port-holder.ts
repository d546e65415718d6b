import { isIP } from 'node:net'
import { linkText, sortedNames, textOfFile } from './optional-files.ts'

/** The process that listens on a TCP port. */
export interface PortHolder {
  readonly pid: number
  /** Its executable's short name. */
  readonly name: string
}

/** Finds who listens on a port of this host, where /proc tells (another user's descriptors need root). */
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
 * The users who made the sockets that listen on a port of an IPv4 address of this host, or of any address where `host` is
 * none. Whoever makes one may hand it to another process: who holds it says nothing of who reads what comes.
 */
export function listeningUsers(port: number, host: string, proc = '/proc'): number[] {
  const octets = isIP(host) === 4 ? Buffer.from(host.split('.').map(Number)) : undefined
  // As the kernel writes them: each four bytes as a number of this machine.
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
  /** Who made it. */
  readonly user: number
  /** As the kernel writes it. */
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
