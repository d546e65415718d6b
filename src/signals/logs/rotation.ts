// Names of rotated log files, and the order in which they were written.

import type { Stats } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { basename, dirname, extname } from 'node:path'
import { realPath } from '../../foundation/lib/optional-files.ts'
import type { Turn } from '../../foundation/lib/turn.ts'
import { type IsHeldPath, statsOf } from './file-finder.ts'

/** Step of the clock of a file system, in milliseconds: a file may appear older by one step. */
export const tickMs = 20
const maxEntries = 100_000
/** Maximum files of one log; over the limit, those with the highest rotation numbers are ignored. */
const maxSiblings = 1000

const compressed = /\.(?:gz|xz|zst|bz2|lz4|zip|Z)$/
/** `1`, `20260101-120000`, `2026-01-01T12:00:00Z.3`, `old`. Other files with the same prefix are other logs. */
const rotatedSuffix = /^(?:\d[0-9A-Za-z_:.+-]*|old|bak|backup|prev|previous|save)$/

/** A file next to a log, with the name of the log as prefix. */
export interface Sibling {
  readonly path: string
  /** Rest of the name after that of the log. */
  readonly suffix: string
  readonly stats: Stats
  readonly isCompressed: boolean
  /** Whether its name is that of a rotated file. */
  readonly isRotated: boolean
}

/** Whether a file is compressed, by its name. */
export function isCompressed(path: string): boolean {
  return compressed.test(path)
}

/**
 * All files next to a log that may once have been it; the log must not be held. Rejects with the error of the system
 * call. `path` may be a link: rotation happens at its target. `isMeant`: files that others must not displace.
 */
export async function siblings(
  path: string,
  turn: Turn,
  isHeld: IsHeldPath,
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
      // Rotators make no links, and a link of another user could expose any file.
      if (suffix !== undefined && !entry.isSymbolicLink()) names.push({ name, suffix })
    }
  } catch (error) {
    // The directory is gone with all its files; after other errors they may still exist.
    if (!/^(?:ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
  // During this loop they may be renamed to the next number: in this order one may be seen twice, but none is missed.
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

/** Order of writing: by last change, then by name. */
export function byAge(one: Sibling, other: Sibling): number {
  const later = one.stats.mtimeMs - other.stats.mtimeMs
  if (later !== 0) return later
  const number = Number(/^\d{1,4}$/.test(one.suffix)) + Number(/^\d{1,4}$/.test(other.suffix))
  // The number rises with each rotation; a newer date is greater.
  if (number === 2) return Number(other.suffix) - Number(one.suffix)
  if (one.suffix !== other.suffix) return one.suffix < other.suffix ? -1 : 1
  return one.stats.ino - other.stats.ino
}

/** Suffix of `app.log.1` and `app-1.log` for `app.log`: the part after the first `.` or `-`, without the extension. */
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

/** Rotation number of a file; 0 for none. */
function sequence(suffix: string): number {
  const number = /^\d{1,4}(?!\d)/.exec(suffix)
  return number ? Number(number[0]) : 0
}
