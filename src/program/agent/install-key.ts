import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { checkOwnDirectory, makeOwnDirectory } from '../../foundation/lib/own-directory.ts'

const keyBytes = 32

/**
 * The secret of this installation for keyed hashes, from `install.key` in the directory, created if missing. Read at
 * the first call. If that fails, the key lasts as long as the process, and a warning is logged.
 */
export function installKey(directory: string, log: Logger): () => Uint8Array {
  let key: Uint8Array | undefined
  return () => {
    if (key !== undefined) return key
    try {
      key = readOrMake(directory)
    } catch (error) {
      log.warn('cannot store the hash key; hashes change at the next restart', {
        reason: errorText(error),
        hint: `allow svc to write to ${directory}, or set pipeline.pii_redaction.hash_key`,
      })
      key = randomBytes(keyBytes)
    }
    return key
  }
}

function readOrMake(directory: string): Uint8Array {
  const path = join(directory, 'install.key')
  checkOwnDirectory(directory)
  const found = read(path)
  if (found !== undefined) return found
  makeOwnDirectory(directory)
  // Written in full under another name first: neither a crash nor another svc must ever find half a key.
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  try {
    write(draft, randomBytes(keyBytes))
    publish(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  sync(directory)
  const kept = read(path)
  if (kept === undefined) throw new Error(`cannot store ${path}: the file was removed`)
  return kept
}

/** The key of a file that no one else could have written or read; undefined if there is none. */
function read(path: string): Uint8Array | undefined {
  let fd: number
  try {
    // Non-blocking: a pipe in its place would block the start.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const { uid, mode, size } = fstatSync(fd)
    if ((mode & constants.S_IFMT) !== constants.S_IFREG)
      throw new Error(`${path} is not a regular file; delete it`)
    if (uid !== 0 && uid !== process.geteuid?.())
      throw new Error(`${path} belongs to user ${uid}, who can read the key; delete it`)
    if ((mode & 0o007) !== 0) throw new Error(`${path} is readable or writable by every user; run chmod 600`)
    if (size !== keyBytes) throw new Error(`${path} has ${size} bytes, but a key has ${keyBytes}; delete it`)
    return readFileSync(fd)
  } finally {
    closeSync(fd)
  }
}

function write(path: string, key: Uint8Array): void {
  const fd = openSync(path, 'wx', 0o600)
  try {
    writeSync(fd, key)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Gives a file its final name, unless another process was faster. */
function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    renameSync(draft, path) // a file system without hard links
  }
}

function sync(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
