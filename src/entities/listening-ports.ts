import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** State of a socket that listens, in /proc/net/tcp (include/net/tcp_states.h). */
const listening = '0A'
/** Descriptors of a process that are looked at. */
const maxDescriptors = 16_384

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

/** Ports of sockets that listen, by what a descriptor's link says. */
type Sockets = ReadonlyMap<string, number>

/** Those of the process's network namespace. */
function socketsSeenBy(procDir: string, pid: number): Sockets {
  const ports = new Map<string, number>()
  for (const file of ['tcp', 'tcp6']) {
    // "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode" (proc_pid_net(5))
    for (const line of textOf(`${procDir}/${pid}/net/${file}`).split('\n')) {
      const fields = line.trim().split(/ +/, 10)
      if (fields[3] !== listening || fields[1] === undefined) continue
      ports.set(`socket:[${fields[9]}]`, Number.parseInt(fields[1].slice(fields[1].indexOf(':') + 1), 16))
    }
  }
  return ports
}

function portsAmong(procDir: string, pid: number, sockets: Sockets): readonly number[] {
  if (sockets.size === 0) return []
  const found = new Set<number>()
  for (const fd of namesIn(`${procDir}/${pid}/fd`).slice(0, maxDescriptors)) {
    const port = sockets.get(targetOf(`${procDir}/${pid}/fd/${fd}`))
    if (port !== undefined) found.add(port)
  }
  return [...found].sort((a, b) => a - b)
}

// A process may end at any moment, and others may not be looked at: what cannot be read is not there.

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

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
