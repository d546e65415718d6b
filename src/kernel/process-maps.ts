import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { processStrings } from './process-strings.ts'

/** An executable mapping of a file in a process. */
export interface Mapping {
  /** As in map_files: hexadecimal `start-end`, without leading zeros. */
  readonly range: string
  readonly start: number
  /** Bytes. */
  readonly size: number
  /** File offset. */
  readonly offset: number
  /** Identifies the file: device and inode, as in this listing. */
  readonly file: string
  /** As the process sees it. */
  readonly path: string
}

/** A Java process may have tens of thousands of lines, at 100 bytes each. */
const mostBytes = 16 * 1024 * 1024
const mostMappings = 4096
const chunkBytes = 128 * 1024
const deletedMark = ' (deleted)'

let buffer = Buffer.allocUnsafe(chunkBytes)

/**
 * Executable mappings of files (proc(5), maps), one line each. Throws if the process exited, may not be read, or holds
 * the lock of its memory.
 */
export function readMappings(procDir: string, pid: number): Mapping[] {
  if (!processStrings.isFree(procDir, pid)) throw new Error('the process holds its memory lock')
  const length = readAll(`${procDir}/${pid}/maps`)
  const found = [...mappingsIn(buffer.subarray(0, length))].filter(mapping => mapping !== undefined)
  if (buffer.length > 4 * chunkBytes) buffer = Buffer.allocUnsafe(chunkBytes)
  return found
}

/**
 * The same from a list that is already read, at most 4,096. A process may have 65,530 lines, and more: the caller can
 * yield between two of them.
 */
export function* mappingsIn(list: Buffer): Generator<Mapping | undefined> {
  let found = 0
  for (let at = 0; at < list.length && found < mostMappings; ) {
    const newline = list.indexOf(10, at)
    const end = newline < 0 ? list.length : newline
    const mapping = parseMapping(list, at, end)
    if (mapping !== undefined) found++
    yield mapping
    at = end + 1
  }
}

/** `7f0c8a035000-7f0c8a093000 r-xp 00020000 fd:00 339900    /usr/lib/x86_64-linux-gnu/libssl.so.3` */
function parseMapping(bytes: Buffer, start: number, end: number): Mapping | undefined {
  const rights = bytes.indexOf(32, start) + 1
  // Most lines end here: not executable.
  if (rights <= 0 || rights + 4 > end || bytes[rights + 2] !== 0x78) return undefined
  const slash = bytes.indexOf(47, rights)
  if (slash < 0 || slash >= end) return undefined
  const [offset = '', device = '', inode = ''] = bytes.toString('latin1', rights + 5, slash).split(' ')
  const path = bytes.toString('utf8', slash, end)
  const range = bytes.toString('latin1', start, rights - 1)
  if (inode === '' || inode === '0') return undefined
  const first = Number.parseInt(range, 16)
  const behind = Number.parseInt(range.slice(range.indexOf('-') + 1), 16)
  return {
    range: `${first.toString(16)}-${behind.toString(16)}`,
    start: first,
    size: behind - first,
    offset: Number.parseInt(offset, 16),
    file: `${device}:${inode}`,
    path: path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path,
  }
}

function readAll(path: string): number {
  const file = openSync(path, 'r')
  try {
    let length = 0
    for (;;) {
      if (length === buffer.length) {
        if (length >= mostBytes) return length
        const larger = Buffer.allocUnsafe(2 * length)
        buffer.copy(larger, 0, 0, length)
        buffer = larger
      }
      const read = readSync(file, buffer, length, buffer.length - length, null)
      if (read === 0) return length
      length += read
    }
  } finally {
    closeSync(file)
  }
}

/** Path of a process's executable, as it sees it; undefined if it exited, may not be read, or is a kernel thread. */
export function programOf(procDir: string, pid: number): string | undefined {
  try {
    const path = readlinkSync(`${procDir}/${pid}/exe`)
    return path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path
  } catch {
    return undefined // it exited, or may not be read
  }
}

/** Address range of this process's vDSO (vdso(7)), kernel code that is in no file; undefined: it has none. */
export function vdsoRange(procDir = '/proc'): { readonly start: number; readonly end: number } | undefined {
  const found = /^([0-9a-f]+)-([0-9a-f]+) .* \[vdso\]$/m.exec(readFileSync(`${procDir}/self/maps`, 'latin1'))
  if (found === null) return undefined
  return { start: Number.parseInt(found[1]!, 16), end: Number.parseInt(found[2]!, 16) }
}
