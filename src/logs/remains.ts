import { type FoundFile, statsOf } from './file-finder.ts'
import type { LogSource } from './line-reader.ts'
import type { LogPositions } from './log-positions.ts'
import { byAge, type Sibling, siblings, tickMs } from './rotation.ts'
import { Slices } from './slices.ts'

export interface RemainsOptions {
  readonly positions: LogPositions
  /** Whose a path is that is not followed; undefined: nobody's. */
  readonly sourceOf: (path: string) => LogSource | undefined
}

/** The file that was last at the path of a log. */
export interface Remains {
  readonly path: string
  readonly source: LogSource
  readonly file: Pick<FoundFile, 'path' | 'stats'>
}

/** Logs that were rotated away while nobody looked, and not begun anew: no pattern means what is left of them. */
export async function remains({ positions, sourceOf }: RemainsOptions): Promise<Remains[]> {
  const slices = new Slices(1)
  const found: Remains[] = []
  for (const path of positions.paths()) {
    await slices.rest()
    if (statsOf(path) !== undefined) continue
    const source = sourceOf(path)
    const file = source && (await lastOf(path, positions, slices))
    if (file !== undefined) found.push({ path, source: source!, file })
  }
  return found
}

async function lastOf(path: string, positions: LogPositions, slices: Slices): Promise<Sibling | undefined> {
  const sinceMs = positions.ofPath(path).at(-1)?.currentMs ?? Number.POSITIVE_INFINITY
  const isOfLog = ({ stats, isCompressed, isRotated }: Sibling) =>
    !isCompressed &&
    (positions.at(stats.dev, stats.ino)?.path === path || (isRotated && stats.mtimeMs >= sinceMs - tickMs))
  try {
    return (await siblings(path, slices)).filter(isOfLog).sort(byAge).at(-1)
  } catch {
    // Its directory cannot be read now: they are found when the log is written again.
    return undefined
  }
}
