// Settled records of the log, on disk: `cursor.json` and `cursor.json.old`, of which each is at times the newer one. A
// file begins with a line: the CRC-32 of its rest as eight hexadecimal digits, then JSON:
// {"acked":17,"holes":[[19,19],[22,40]]}. After it there may be the rest of a longer line.

import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Files } from './log.ts'
import { mostSeq } from './record-format.ts'
import type { SettledRanges } from './settled-ranges.ts'

const names = ['cursor.json', 'cursor.json.old'] as const
const lineEnd = 10
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
  return Buffer.concat([Buffer.from(crc32(json).toString(16).padStart(8, '0')), json, Buffer.from([lineEnd])])
}

/** Cursor from the bytes of a file; undefined if damaged. */
function decodeCursor(bytes: Buffer): Cursor | undefined {
  const end = bytes.indexOf(lineEnd)
  const json = bytes.subarray(8, end < 0 ? bytes.length : end)
  if (crc32(json).toString(16).padStart(8, '0') !== bytes.toString('latin1', 0, 8)) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(json.toString())
  } catch {
    return undefined // the CRC matched by chance
  }
  return isCursor(parsed) ? parsed : undefined
}

/** Adds the records of all readable cursors: what was settled once stays so. Never throws. */
export function readCursors(directory: string, files: Files, settled: SettledRanges): void {
  for (const name of names) {
    const cursor = readOne(join(directory, name), files)
    settled.add(1, cursor?.acked ?? 0)
    for (const [from, to] of cursor?.holes ?? []) settled.add(from, to)
  }
}

/**
 * Writes cursors, to two files by turns, so that one of them always holds the last durable one. A file is written in
 * place. It is replaced before its first use, and after a failure: the kernel may mark pages as clean that are not on
 * disk.
 */
export class CursorFiles {
  readonly #directory: string
  readonly #files: Files
  /** Index of the file to write next. */
  #next = 0
  /** Whether each of them can be written in place. */
  readonly #isSound = [false, false]

  constructor(directory: string, files: Files) {
    this.#directory = directory
    this.#files = files
  }

  /**
   * Writes a cursor, and makes it durable if asked to; returns whether it is. Concurrent calls would write to the same
   * file. Throws the error of the system call; the last durable cursor then remains.
   */
  async write(bytes: Buffer, durably: boolean): Promise<boolean> {
    const next = this.#next
    const path = join(this.#directory, names[next]!)
    const wasSound = this.#isSound[next]!
    this.#isSound[next] = false
    let isDurable = durably
    if (!wasSound || !(await overwrite(path, this.#files, bytes, durably))) {
      await replace(this.#directory, path, this.#files, bytes)
      isDurable = true
    }
    this.#isSound[next] = true
    if (isDurable) this.#next = 1 - next
    return isDurable
  }
}

/** Writes to the beginning of a file. False if it does not exist. */
async function overwrite(path: string, files: Files, bytes: Buffer, durably: boolean): Promise<boolean> {
  let fd: number
  try {
    fd = files.open(path, 'update')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  await fill(path, fd, files, bytes, durably)
  return true
}

/** Writes a temporary file, syncs it, renames it, and syncs the directory. */
async function replace(directory: string, path: string, files: Files, bytes: Buffer): Promise<void> {
  const aside = `${path}.tmp`
  discard(aside, files)
  try {
    await fill(aside, files.open(aside, 'append'), files, bytes, true)
  } catch (error) {
    discard(aside, files)
    throw error
  }
  files.rename(aside, path)
  await syncDirectory(directory, files)
}

/** Writes and closes a file. */
async function fill(path: string, fd: number, files: Files, bytes: Buffer, durably: boolean): Promise<void> {
  try {
    for (let at = 0; at < bytes.length; ) {
      const written = files.write(fd, [bytes.subarray(at)])
      if (written === 0) throw new Error(`cannot write ${path}: no bytes were written`)
      at += written
    }
    if (durably) await files.sync(fd)
  } finally {
    files.close(fd)
  }
}

function discard(path: string, files: Files): void {
  try {
    files.remove(path)
  } catch {
    // It does not exist, or the next write removes it.
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
