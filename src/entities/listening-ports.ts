import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'

/** State of a socket that listens, in /proc/net/tcp (include/net/tcp_states.h). */
const listening = '0A'
/** Descriptors of a process that are looked at. */
const maxDescriptors = 16_384
/** Of one network namespace. */
const maxListeners = 65_536
const maxProcesses = 10_000
/** So long `allListeners` works before it lets others. */
const workMs = 2

/** TCP ports that a process listens at, in rising order; empty where it has ended or may not be looked at. */
export function listeningPorts(procDir: string, pid: number): readonly number[] {
  return portsAmong(procDir, pid, socketsSeenBy(procDir, pid))
}

/**
 * Processes that listen at a TCP port. Looks at the descriptors of all processes, and once at the sockets of each network
 * namespace: some milliseconds.
 */
export function listenersAt(procDir: string, port: number): number[] {
  const namespaces = new Map<string, Sockets>()
  return namesIn(procDir)
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      const namespace = targetOf(`${procDir}/${pid}/ns/net`)
      const sockets = namespaces.get(namespace) ?? socketsSeenBy(procDir, pid)
      if (namespace !== '') namespaces.set(namespace, sockets)
      return portsAmong(procDir, pid, sockets).includes(port)
    })
}

/**
 * The TCP ports that each process of the host listens at, in any network namespace: of at most 10,000 processes. Takes
 * some 20 µs for each process and 2 µs for each of its descriptors, and lets others work between.
 */
export async function allListeners(procDir: string): Promise<Map<number, readonly number[]>> {
  const found = new Map<number, readonly number[]>()
  const namespaces = new Map<string, Sockets>()
  const pids = namesIn(procDir).filter(name => /^\d+$/.test(name))
  let sinceMs = performance.now()
  for (const pid of pids.slice(0, maxProcesses).map(Number)) {
    const namespace = targetOf(`${procDir}/${pid}/ns/net`)
    // A thread of the kernel, or one that ended.
    if (namespace === '') continue
    const sockets = namespaces.get(namespace) ?? socketsSeenBy(procDir, pid)
    namespaces.set(namespace, sockets)
    const ports = new Set<number>()
    const fds = sockets.size === 0 ? [] : namesIn(`${procDir}/${pid}/fd`).slice(0, maxDescriptors)
    for (const [i, fd] of fds.entries()) {
      const port = sockets.get(targetOf(`${procDir}/${pid}/fd/${fd}`))
      if (port !== undefined) ports.add(port)
      if (i % 64 !== 63 || performance.now() - sinceMs < workMs) continue
      await setImmediate()
      sinceMs = performance.now()
    }
    if (ports.size > 0) found.set(pid, inOrder(ports))
    if (performance.now() - sinceMs < workMs) continue
    await setImmediate()
    sinceMs = performance.now()
  }
  return found
}

/** Ports of sockets that listen, by what a descriptor's link says. */
type Sockets = ReadonlyMap<string, number>

/** Those of the process's network namespace. */
function socketsSeenBy(procDir: string, pid: number): Sockets {
  const ports = new Map<string, number>()
  for (const file of ['tcp', 'tcp6']) addListeners(`${procDir}/${pid}/net/${file}`, ports)
  return ports
}

/** The kernel tells those that listen before all others (net/ipv4/tcp_ipv4.c, tcp_get_idx): the rest is not read. */
function addListeners(path: string, ports: Map<string, number>): void {
  let fd = -1
  try {
    fd = openSync(path, 'r')
    let rest = ''
    for (;;) {
      const size = readSync(fd, tableBytes, 0, tableBytes.length, null)
      if (size === 0) return
      const lines = (rest + tableBytes.toString('latin1', 0, size)).split('\n')
      rest = lines.pop()!
      // "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode" (proc_pid_net(5))
      for (const line of lines) {
        const fields = line.trim().split(/ +/, 10)
        if (fields[0] === 'sl') continue
        if (fields[3] !== listening || ports.size >= maxListeners) return
        const local = fields[1]!
        const port = Number.parseInt(local.slice(local.indexOf(':') + 1), 16)
        if (port >= 0 && port <= 0xffff) ports.set(`socket:[${fields[9]}]`, port)
      }
    }
  } catch {
    return // it ended
  } finally {
    if (fd >= 0) closeSync(fd)
  }
}

const tableBytes = Buffer.alloc(64 * 1024)

function portsAmong(procDir: string, pid: number, sockets: Sockets): readonly number[] {
  if (sockets.size === 0) return []
  const found = new Set<number>()
  for (const fd of namesIn(`${procDir}/${pid}/fd`).slice(0, maxDescriptors)) {
    const port = sockets.get(targetOf(`${procDir}/${pid}/fd/${fd}`))
    if (port !== undefined) found.add(port)
  }
  return inOrder(found)
}

function inOrder(ports: ReadonlySet<number>): number[] {
  return [...ports].sort((a, b) => a - b)
}

// A process may end at any moment, and others may not be looked at: what cannot be read is not there.

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function targetOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
