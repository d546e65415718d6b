// More than one connection accepted in a turn of the event loop.

import { createServer, type Server } from 'node:net'

/** Duplicates a descriptor. Throws if there is none left. */
export type Duplicate = (fd: number) => number

/** Duplicates of a descriptor: so many more connections are accepted per turn. */
const mostDoors = 31

/**
 * The runtime accepts one connection of a listening socket per turn of the loop (libuv, since 1.45), so that on a busy
 * host a flood delays all other clients by seconds: a turn may take tens of milliseconds there. Each duplicate of the
 * socket's descriptor accepts one more. Returns a function that closes them; the server also works without duplicates.
 */
export function openDoors(server: Server, duplicate: Duplicate, backlog: number): () => void {
  // The same in all servers of the runtime, and in no documentation.
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
      break // descriptors are short: others need them more
    }
    const door = createServer({ allowHalfOpen, noDelay: true })
    door.on('connection', socket => {
      // The runtime finds the server's timeouts and error handling by this.
      Object.assign(socket, { server })
      server.emit('connection', socket)
    })
    door.on('error', () => door.close())
    door.listen({ fd: own, backlog })
    // The server itself keeps the process alive, where it is to.
    door.unref()
    doors.push(door)
  }
  return () => {
    for (const door of doors) door.close()
  }
}
