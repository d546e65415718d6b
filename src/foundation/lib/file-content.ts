// Configuration files: read once for their content, later checked for changes.

import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/** Larger files are not read: a configuration with thousands of targets is well below. */
const contentLimit = 1024 * 1024

/** Prefix of the states of unreadable files; no digest begins with it. */
const absent = '!'

/** State of a file that does not exist. */
export const noSuchFile = `${absent}ENOENT`

/** State of a pipe, device or socket, whose content is not read. */
export const specialFile = `${absent}special`

/** The content of a file. */
export interface Content {
  /** Undefined if unreadable. */
  readonly bytes?: Buffer
  /** Why it is unreadable, in plain words that end a sentence; '' if it was read. */
  readonly fault: string
  /** It exists, but this process may not read it. */
  readonly denied?: boolean
  /** As returned by `contentState`. */
  readonly state: string
  /** It is a pipe: it can be read only once. */
  readonly once: boolean
}

/**
 * Reads a file of at most `contentLimit` bytes. Pipes and devices are read only with `special`: opening a pipe waits
 * for its writer.
 */
export function readContent(path: string, special: boolean): Content {
  let once = false
  try {
    if (!special) {
      const stats = statSync(path)
      if (!stats.isFile()) return { fault: 'it is not a regular file', state: otherState(stats), once }
    }
    // The file may have been replaced by a pipe.
    const file = openSync(path, special ? constants.O_RDONLY : constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(file)
      if (!special && !stats.isFile())
        return { fault: 'it is not a regular file', state: otherState(stats), once }
      once = stats.isFIFO() || stats.isSocket()
      const buffer = Buffer.allocUnsafe(64 * 1024)
      const parts: Buffer[] = []
      let size = 0
      for (;;) {
        const read = readSync(file, buffer, 0, buffer.length, null)
        if (read === 0) break
        size += read
        if (size > contentLimit) return { fault: 'the file is larger than 1 MiB', state: tooLarge, once }
        parts.push(Buffer.from(buffer.subarray(0, read)))
      }
      const bytes = Buffer.concat(parts)
      const state = stats.isFile() ? createHash('sha256').update(bytes).digest('hex') : otherState(stats)
      return { bytes, fault: '', state, once }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return { fault: fileCause(error), denied: isDenied(error), state: failedState(error), once }
  }
}

/**
 * A text that changes with a file's content: a digest, or why there is none. It does not depend on times, names or
 * inodes, so renames, links and touching the file do not change it. Must never be shown: the digest of a short secret
 * can be guessed. Reads at most `contentLimit` bytes, and never waits for a pipe.
 */
export async function contentState(path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = await file.stat()
    if (!stats.isFile()) return otherState(stats)
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafe(64 * 1024)
    for (let size = 0; ; ) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null)
      if (bytesRead === 0) return hash.digest('hex')
      size += bytesRead
      if (size > contentLimit) return tooLarge
      hash.update(buffer.subarray(0, bytesRead))
    }
  } catch (error) {
    return failedState(error)
  } finally {
    // The bytes were read; a failed close does not affect the content.
    await file?.close().catch(() => undefined)
  }
}

/** The states of several files. */
export async function contentStates(paths: Iterable<string>): Promise<Map<string, string>> {
  const states = new Map<string, string>()
  for (const path of paths) states.set(path, await contentState(path))
  return states
}

const tooLarge = `${absent}EFBIG`

function otherState(stats: Stats): string {
  return stats.isDirectory() ? `${absent}EISDIR` : specialFile
}

function failedState(error: unknown): string {
  return `${absent}${(error as NodeJS.ErrnoException).code ?? 'failed'}`
}

/** The cause of a failed file operation in plain words. */
export function fileCause(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file'
  if (isDenied(error)) return 'permission denied'
  if (code === 'EISDIR') return 'it is a directory'
  return code ?? message
}

function isDenied(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM'
}
