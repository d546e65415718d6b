import { closeSync, openSync, readSync } from 'node:fs'

/** Of one reading; the kernel answers with a page of its tables at most. */
const piece = Buffer.alloc(64 * 1024)

/**
 * The lines of a file, without their ends, of its first `mostBytes` bytes. They are read as they are asked for: a table
 * of the kernel with a hundred thousand lines holds nobody up who lets others have their turns between two. None where it
 * cannot be read.
 */
export function* linesOf(path: string, mostBytes: number): Generator<string, void> {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return
  }
  try {
    let rest = ''
    for (let left = mostBytes; left > 0; ) {
      const size = bytesOf(fd, Math.min(left, piece.length))
      if (size === 0) break
      left -= size
      const lines = (rest + piece.toString('latin1', 0, size)).split('\n')
      rest = lines.pop()!
      yield* lines
    }
    if (rest !== '') yield rest
  } finally {
    closeSync(fd)
  }
}

function bytesOf(fd: number, most: number): number {
  try {
    return readSync(fd, piece, 0, most, null)
  } catch {
    return 0 // whose table it was has ended
  }
}
