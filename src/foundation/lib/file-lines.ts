import { closeSync, openSync, readSync } from 'node:fs'

/** Bytes per read; the kernel returns at most a page of its tables. */
const piece = Buffer.alloc(64 * 1024)

/**
 * The lines in the first `mostBytes` bytes of a file, without their ends. They are read lazily: the caller can yield
 * between lines of a kernel table with a hundred thousand of them. Empty if unreadable.
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
    return 0 // the process of the table exited
  }
}
