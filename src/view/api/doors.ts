// Accepts more than one connection per turn of the event loop.

import { createServer, type Server } from 'node:net'

/** Duplicates a descriptor. Throws if none is left. */
export type Duplicate = (fd: number) => number

/** Duplicates per descriptor: so many more connections are accepted per turn. */
const mostDoors = 31

/**
 * The runtime accepts one connection of a listening socket per turn of the loop (libuv, since 1.45). On a busy host,
 * where a turn may take tens of milliseconds, a flood would delay all other clients by seconds. Each duplicate of the
 * socket's descriptor accepts one more. Returns a function that closes them; the server also works without duplicates.
 */
export function openDoors(server: Server, duplicate: Duplicate, backlog: number): () => void {
  // Undocumented, but the same in all servers of the runtime.
  const { _handle, allowHalfOpen = false } = server as Server & {
    readonly _handle?: { readonly fd?: number } | null
    readonly allowHalfOpen?: boolean
  }
  const fd = _handle?.fd ?? -1
  const doors: Server[] = []
  for (let i = 0; fd >= 0 && i < mostDoors; i++) {
    let own: number
    try {
      own = duplicate(fd)
    } catch {
      break // descriptors are scarce: others need them more
    }
    const door = createServer({ allowHalfOpen, noDelay: true })
    door.on('connection', socket => {
      // The runtime finds the server's timeouts and error handling through this property.
      Object.assign(socket, { server })
      server.emit('connection', socket)
    })
    door.on('error', () => door.close())
    door.listen({ fd: own, backlog })
    // The server itself keeps the process alive where required.
    door.unref()
    doors.push(door)
  }
  return () => {
    for (const door of doors) door.close()
  }
}
