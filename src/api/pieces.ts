import type { Socket } from 'node:net'

/** Bytes that are parsed at a time. */
const pieceBytes = 1024

/**
 * Has what comes on a connection parsed in pieces, and no further once it is paused or closed. To be called when the
 * HTTP server has begun to listen to it. By itself the runtime parses all that it has read, and makes objects of every
 * request in it, before it minds either: of 64 KiB these are 6 MB, and ten such connections would end the agent.
 */
export function parseInPieces(socket: Socket): void {
  const parsers = socket.listeners('data') as ((bytes: Buffer) => void)[]
  for (const parser of parsers) socket.off('data', parser)
  socket.on('data', (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      // Without a listener it was handed over to somebody else.
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
