import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

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
    for (const inode of listeners(read(`${proc}/net/${table}`), port)) sockets.add(`socket:[${inode}]`)
  }
  if (sockets.size === 0) return undefined
  for (const pid of list(proc)) {
    if (!/^\d+$/.test(pid)) continue
    const fds = `${proc}/${pid}/fd`
    if (!list(fds).some(fd => sockets.has(link(`${fds}/${fd}`)))) continue
    return { pid: Number(pid), name: read(`${proc}/${pid}/comm`).trim() || 'unknown' }
  }
  return undefined
}

/** Inodes of the sockets that listen on a port, from the text of /proc/net/tcp (proc_pid_net(5)). */
export function listeners(table: string, port: number): string[] {
  const inodes: string[] = []
  for (const line of table.split('\n')) {
    const fields = line.trim().split(/\s+/)
    const local = fields[1] ?? ''
    if (fields[3] !== '0A' || Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16) !== port) continue
    if (fields[9] !== undefined) inodes.push(fields[9])
  }
  return inodes
}

// Processes come and go while they are read, and some are another user's: what cannot be read is not there.
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
