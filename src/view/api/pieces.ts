import type { Socket } from 'node:net'

/** Bytes that are parsed at a time. */
const pieceBytes = 1024

/**
 * Parses the data of a connection in pieces, and stops once it is paused or closed. Call it after the HTTP server has
 * attached its listeners. The runtime itself parses everything it has read, and creates objects for each request,
 * before it checks either: 64 KiB of requests take 6 MB, and ten such connections would end the agent.
 */
export function parseInPieces(socket: Socket): void {
  const parsers = socket.listeners('data') as ((bytes: Buffer) => void)[]
  for (const parser of parsers) socket.off('data', parser)
  socket.on('data', (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      // Without a listener, the connection was handed over.
      if (socket.destroyed || socket.listenerCount('data') === 0) return
      if (socket.isPaused()) {
        socket.unshift(bytes.subarray(at))
        return
      }
      const piece = bytes.subarray(at, at + pieceBytes)
      for (const parser of parsers) parser.call(socket, piece)
    }
  })
}
