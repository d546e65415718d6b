import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { Turn } from '../../foundation/lib/turn.ts'
import { type FoundFile, type IsHeldPath, statsOf } from './file-finder.ts'
import type { LogSource } from './line-reader.ts'
import { logOwner } from './log-owner.ts'
import type { LogPositions } from './log-positions.ts'
import { byAge, type Sibling, siblings, tickMs } from './rotation.ts'
import type { SourceFiles } from './source-files.ts'

export interface RotatedLeftoversOptions {
  readonly positions: LogPositions
  readonly sourceFiles: SourceFiles
  readonly isHeld: IsHeldPath
}

/** The last file at the path of a log. */
export interface RotatedLeftover {
  /** File, with the path of its log. */
  readonly file: FoundFile
  readonly source: LogSource
  /** Current path. */
  readonly name: string
}

/**
 * Logs that were rotated away while svc was not running, without a new file: no pattern matches their rotated files.
 */
export async function rotatedLeftovers(options: RotatedLeftoversOptions): Promise<RotatedLeftover[]> {
  const { positions, sourceFiles, isHeld } = options
  const turn = new Turn(1)
  const found: RotatedLeftover[] = []
  for (const path of positions.paths()) {
    await turn.rest()
    const source = isHeld(path) ? undefined : sourceFiles.sourceOf(path)
    if (source === undefined || statsOf(path) !== undefined) continue
    const last = await lastOf(path, options, turn)
    if (last === undefined) continue
    const { path: name, stats } = last
    const pattern = sourceFiles.patternOf(source, path) ?? ''
    found.push({ file: { path, pattern, owner: logOwner(path, stats.uid), stats }, source, name })
  }
  return found
}

async function lastOf(
  path: string,
  { positions, isHeld }: RotatedLeftoversOptions,
  turn: Turn,
): Promise<Sibling | undefined> {
  const sinceMs = positions.ofPath(path).at(-1)?.currentMs ?? Number.POSITIVE_INFINITY
  const isKnown = ({ dev, ino }: Stats) => positions.at(dev, ino)?.path === path
  try {
    // The owner: a file of another user is never taken as a successor. If no file is left, the directory determines it.
    const known = await siblings(path, turn, isHeld, isKnown)
    const users = new Set([0, ...known.map(({ stats }) => stats.uid)])
    const directory = known.length > 0 ? undefined : statsOf(dirname(path))
    if (directory !== undefined) users.add(directory.uid)
    const isOfLog = ({ stats, isCompressed, isRotated }: Sibling) =>
      !isCompressed && (isKnown(stats) || (isRotated && stats.mtimeMs >= sinceMs - tickMs))
    const found = await siblings(path, turn, isHeld, ({ uid }) => users.has(uid))
    return found.filter(isOfLog).sort(byAge).at(-1)
  } catch {
    // Its directory cannot be read now: the files are found when the log is written again.
    return undefined
  }
}
