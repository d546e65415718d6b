import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/**
 * Reads a file named by an operator, up to `mostBytes`, without blocking the event loop if its file system hangs.
 * Follows links, and never waits for the writer of a pipe. Rejects with the error of the system call, or one whose
 * message is only the cause.
 */
export async function readSmallFile(path: string, mostBytes: number): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error('not a regular file')
    // Some file systems report no size.
    const room = Math.min(Math.max(stats.size, 4_096), mostBytes) + 1
    const bytes = Buffer.allocUnsafe(room)
    let length = 0
    while (length < room) {
      const { bytesRead } = await file.read(bytes, length, room - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > mostBytes) throw new Error(`it is larger than ${mostBytes} bytes`)
    return bytes.subarray(0, length)
  } finally {
    // The bytes were read; a failed close does not affect the content.
    await file.close().catch(() => undefined)
  }
}
