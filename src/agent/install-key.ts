import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { errorText, type Logger } from '../lib/logger.ts'

const keyBytes = 32

/**
 * The secret of this installation for keyed hashes, from `install.key` in the directory, which is made where it is not
 * there. Read at the first call. Where that is not possible the key lasts as long as the process, and a warning says so.
 */
export function installKey(directory: string, log: Logger): () => Uint8Array {
  let key: Uint8Array | undefined
  return () => {
    if (key !== undefined) return key
    try {
      key = readOrMake(directory)
    } catch (error) {
      log.warn('the key for hashes cannot be kept, so the same text has another hash after a restart', {
        reason: errorText(error),
        mend: `let svc write to ${directory}, or set pipeline.pii_redaction.hash_key`,
      })
      key = randomBytes(keyBytes)
    }
    return key
  }
}

function readOrMake(directory: string): Uint8Array {
  const path = join(directory, 'install.key')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  let fd: number
  try {
    fd = openSync(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const found = readFileSync(path)
    if (found.length === keyBytes) return found
    throw new Error(`${path} has ${found.length} bytes where a key has ${keyBytes}; delete it`)
  }
  try {
    const made = randomBytes(keyBytes)
    writeSync(fd, made)
    fsyncSync(fd)
    return made
  } finally {
    closeSync(fd)
  }
}
