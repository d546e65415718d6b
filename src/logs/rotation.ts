// What a log's files are called after they were rotated, and in which order they were written.

import type { Stats } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { basename, dirname, extname } from 'node:path'
import { realPath } from '../lib/if-there.ts'
import type { Turn } from '../lib/turn.ts'
import { type HoldsPath, statsOf } from './file-finder.ts'

/** The clock of a file system goes in steps: a file may be said to be older by one of them than it is. */
export const tickMs = 20
const maxEntries = 100_000
/** Files of one log that are looked at; beyond it those are left that a rotator numbers highest. */
const maxSiblings = 1000

const compressed = /\.(?:gz|xz|zst|bz2|lz4|zip|Z)$/
/** `1`, `20260101-120000`, `2026-01-01T12:00:00Z.3`, `old`. Other files that begin alike are other logs. */
const rotatedSuffix = /^(?:\d[0-9A-Za-z_:.+-]*|old|bak|backup|prev|previous|save)$/

/** A file beside a log, whose name begins as the log's. */
export interface Sibling {
  readonly path: string
  /** What follows the log's own name. */
  readonly suffix: string
  readonly stats: Stats
  readonly isCompressed: boolean
  /** Its name is one that rotated files have. */
  readonly isRotated: boolean
}

/** Whether a file is one that was packed after it was written. */
export function isCompressed(path: string): boolean {
  return compressed.test(path)
}

/**
 * All files beside a log, which must not be held, that may once have been it; rejects with the error of the system call.
 * `path` may be a link: rotation happens where it leads. `isMeant`: others take no place of these.
 */
export async function siblings(
  path: string,
  turn: Turn,
  isHeld: HoldsPath,
  isMeant: (stats: Stats) => boolean = () => true,
): Promise<Sibling[]> {
  const real = realPath(path, path)
  const directory = dirname(real)
  const base = basename(real)
  const names: { readonly name: string; readonly suffix: string }[] = []
  let entries = 0
  try {
    for await (const entry of await opendir(directory, { bufferSize: 256 })) {
      if (++entries > maxEntries) break
      await turn.rest()
      const { name } = entry
      const suffix = suffixOf(name, base)
      // No rotator makes links, and whoever else does could have any file read.
      if (suffix !== undefined && !entry.isSymbolicLink()) names.push({ name, suffix })
    }
  } catch (error) {
    // It is gone, and all its files with it; what only failed may hold them still.
    if (!/^(?:ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
  // While they are looked at they may be renamed to the next number: then one is met again, and none is missed.
  names.sort((one, other) => sequence(one.suffix) - sequence(other.suffix))
  const found: Sibling[] = []
  for (const { name, suffix } of names) {
    if (found.length >= maxSiblings) break
    await turn.rest()
    const path = `${directory}/${name}`
    const stats = isHeld(path, true) ? undefined : statsOf(path)
    if (!stats?.isFile() || !isMeant(stats)) continue
    const packed = isCompressed(name)
    const plain = packed ? suffix.replace(compressed, '') : suffix
    found.push({
      path,
      suffix: plain,
      stats,
      isCompressed: packed,
      isRotated: rotatedSuffix.test(plain),
    })
  }
  return found
}

/** In the order in which they were written: by their last change, then by what their names say. */
export function byAge(one: Sibling, other: Sibling): number {
  const later = one.stats.mtimeMs - other.stats.mtimeMs
  if (later !== 0) return later
  const number = Number(/^\d{1,4}$/.test(one.suffix)) + Number(/^\d{1,4}$/.test(other.suffix))
  // The number rises with each rotation; a date is greater for what is newer.
  if (number === 2) return Number(other.suffix) - Number(one.suffix)
  if (one.suffix !== other.suffix) return one.suffix < other.suffix ? -1 : 1
  return one.stats.ino - other.stats.ino
}

/** `app.log.1` and `app-1.log` of `app.log`: what stands behind the first `.` or `-`, without the ending. */
function suffixOf(name: string, base: string): string | undefined {
  if (name.startsWith(base) && /[.-]/.test(name[base.length] ?? '')) return name.slice(base.length + 1)
  const ending = extname(base)
  if (ending === '') return undefined
  const stem = base.slice(0, -ending.length)
  if (!name.startsWith(stem) || !/[.-]/.test(name[stem.length] ?? '')) return undefined
  const rest = name.slice(stem.length + 1)
  const packing = compressed.exec(rest)?.[0] ?? ''
  const plain = rest.slice(0, rest.length - packing.length)
  if (!plain.endsWith(ending)) return undefined
  const suffix = plain.slice(0, -ending.length)
  return rotatedSuffix.test(suffix) ? suffix + packing : undefined
}

/** The number by which a rotated file goes on to the next one; 0 where it has none. */
function sequence(suffix: string): number {
  const number = /^\d{1,4}(?!\d)/.exec(suffix)
  return number ? Number(number[0]) : 0
}
