// BPF iterators: programs that the kernel runs for each of its processes, files or sockets during a read.

import { close, closeSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import type { LinkHandle, Native } from './native.ts'

const readLater = promisify(read)
const closeLater = promisify(close)
/** Maximum that the kernel returns per read. */
const chunkBytes = 65_536

/** Runs an attached iterator once; returns its output, at most `maxBytes`. Throws the kernel's error. */
export function readIterator(
  native: Native,
  link: LinkHandle,
  maxBytes: number,
): { readonly bytes: Buffer; readonly truncated: boolean } {
  const fd = native.iteratorOpen(link)
  try {
    const parts: Buffer[] = []
    for (let size = 0; ; ) {
      // One byte more distinguishes complete from truncated output.
      const part = Buffer.allocUnsafe(Math.min(chunkBytes, maxBytes + 1 - size))
      const length = patiently(() => readSync(fd, part, 0, part.length, null))
      if (length > 0) parts.push(part.subarray(0, length))
      size += length
      if (length > 0 && size <= maxBytes) continue
      const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
      return { bytes: bytes.subarray(0, maxBytes), truncated: size > maxBytes }
    }
  } finally {
    closeSync(fd)
  }
}

/**
 * Runs an attached iterator once for its effects in the kernel: with many processes that takes a second, which does not
 * block the event loop. Rejects with the kernel's error.
 */
export async function runIterator(native: Native, link: LinkHandle): Promise<void> {
  const fd = native.iteratorOpen(link)
  try {
    const part = Buffer.allocUnsafe(4_096)
    while ((await readPatiently(fd, part)) > 0);
  } finally {
    await closeLater(fd)
  }
}

async function readPatiently(fd: number, part: Buffer): Promise<number> {
  for (;;) {
    try {
      return (await readLater(fd, part, 0, part.length, null)).bytesRead
    } catch (error) {
      if (!isPassing(error)) throw error
    }
  }
}

function patiently(call: () => number): number {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if (!isPassing(error)) throw error
    }
  }
}

/** Retryable: it was interrupted, or processed a million rows without output, and continues from there. */
function isPassing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EAGAIN' || code === 'EINTR'
}
