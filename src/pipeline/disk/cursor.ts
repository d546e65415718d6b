// Settled records of the log, on disk: `cursor.json`, and the previous one as `cursor.json.old`. A file is the CRC-32
// of the rest as eight hexadecimal digits, then JSON: {"acked":17,"holes":[[19,19],[22,40]]}.

import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Files } from './log.ts'
import { mostSeq } from './record-format.ts'

const name = 'cursor.json'
/** Maximum ranges in a file; records in further ranges are sent again after a restart. */
export const mostHoles = 1024
const mostBytes = 256 * 1024

export interface Cursor {
  /** All records up to this one are settled. */
  readonly acked: number
  /** Ranges of settled records above it, ascending, both ends included. */
  readonly holes: readonly (readonly [from: number, to: number])[]
}

export function encodeCursor(cursor: Cursor): Buffer {
  const json = Buffer.from(JSON.stringify({ acked: cursor.acked, holes: cursor.holes }))
  return Buffer.concat([Buffer.from(crc32(json).toString(16).padStart(8, '0')), json])
}

/** Cursor from the bytes of a file; undefined if damaged. */
function decodeCursor(bytes: Buffer): Cursor | undefined {
  const json = bytes.subarray(8)
  if (crc32(json).toString(16).padStart(8, '0') !== bytes.toString('latin1', 0, 8)) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(json.toString())
  } catch {
    return undefined // the CRC matched by chance
  }
  return isCursor(parsed) ? parsed : undefined
}

/** Latest readable cursor; undefined for none. Never throws. */
export function readCursor(directory: string, files: Files): Cursor | undefined {
  return readOne(join(directory, name), files) ?? readOne(join(directory, `${name}.old`), files)
}

/**
 * Makes a cursor durable: writes a temporary file, syncs it, renames it, and syncs the directory. Concurrent calls
 * would write to the same file. Throws the error of the system call; the previous cursor then remains.
 */
export async function writeCursor(directory: string, files: Files, bytes: Buffer): Promise<void> {
  const path = join(directory, name)
  const aside = `${path}.tmp`
  try {
    await writeDurably(aside, files, bytes)
  } catch (error) {
    discard(aside, files)
    throw error
  }
  try {
    files.rename(path, `${path}.old`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  files.rename(aside, path)
  await syncDirectory(directory, files)
}

async function writeDurably(path: string, files: Files, bytes: Buffer): Promise<void> {
  const fd = files.open(path, 'append')
  try {
    files.truncate(fd, 0)
    for (let at = 0; at < bytes.length; ) {
      const written = files.write(fd, [bytes.subarray(at)])
      if (written === 0) throw new Error(`cannot write ${path}: no bytes were written`)
      at += written
    }
    await files.sync(fd)
  } finally {
    files.close(fd)
  }
}

/** Removes a file whose sync failed: the kernel may mark pages as clean that are not on disk. */
function discard(path: string, files: Files): void {
  try {
    files.remove(path)
  } catch {
    // It was not created, or the next cursor overwrites it.
  }
}

/** `Files.syncDirectory` in the thread pool. */
export async function syncDirectory(directory: string, files: Files): Promise<void> {
  const fd = files.open(directory, 'read')
  try {
    await files.sync(fd)
  } finally {
    files.close(fd)
  }
}

function readOne(path: string, files: Files): Cursor | undefined {
  let fd: number
  try {
    fd = files.open(path, 'read')
  } catch {
    return undefined // missing or unreadable: records are sent again rather than lost
  }
  try {
    const bytes = Buffer.alloc(Math.min(files.size(fd), mostBytes))
    return decodeCursor(bytes.subarray(0, files.read(fd, bytes, 0)))
  } catch {
    return undefined // as above
  } finally {
    files.close(fd)
  }
}

function isCursor(value: unknown): value is Cursor {
  if (typeof value !== 'object' || value === null) return false
  const { acked, holes } = value as { acked?: unknown; holes?: unknown }
  if (!isSeq(acked) || !Array.isArray(holes) || holes.length > mostHoles) return false
  let above = acked
  for (const hole of holes) {
    if (!Array.isArray(hole) || !isSeq(hole[0]) || !isSeq(hole[1])) return false
    if (hole[0] <= above || hole[1] < hole[0]) return false
    above = hole[1]
  }
  return true
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostSeq
}
