import { type FoundFile, type HoldsPath, statsOf } from './file-finder.ts'
import type { LogSource } from './line-reader.ts'
import type { LogPositions } from './log-positions.ts'
import { byAge, type Sibling, siblings, tickMs } from './rotation.ts'
import { Slices } from './slices.ts'

export interface RemainsOptions {
  readonly positions: LogPositions
  /** Whose a path is that is not followed; undefined: nobody's. */
  readonly sourceOf: (path: string) => LogSource | undefined
  readonly isHeld: HoldsPath
}

/** The file that was last at the path of a log. */
export interface Remains {
  readonly path: string
  readonly source: LogSource
  readonly file: Pick<FoundFile, 'path' | 'stats'>
}

/** Logs that were rotated away while nobody looked, and not begun anew: no pattern means what is left of them. */
export async function remains(options: RemainsOptions): Promise<Remains[]> {
  const { positions, sourceOf, isHeld } = options
  const slices = new Slices(1)
  const found: Remains[] = []
  for (const path of positions.paths()) {
    await slices.rest()
    const source = isHeld(path) ? undefined : sourceOf(path)
    if (source === undefined || statsOf(path) !== undefined) continue
    const file = await lastOf(path, options, slices)
    if (file !== undefined) found.push({ path, source, file })
  }
  return found
}

async function lastOf(
  path: string,
  { positions, isHeld }: RemainsOptions,
  slices: Slices,
): Promise<Sibling | undefined> {
  const sinceMs = positions.ofPath(path).at(-1)?.currentMs ?? Number.POSITIVE_INFINITY
  const isOfLog = ({ stats, isCompressed, isRotated }: Sibling) =>
    !isCompressed &&
    (positions.at(stats.dev, stats.ino)?.path === path || (isRotated && stats.mtimeMs >= sinceMs - tickMs))
  try {
    return (await siblings(path, slices, isHeld)).filter(isOfLog).sort(byAge).at(-1)
  } catch {
    // Its directory cannot be read now: they are found when the log is written again.
    return undefined
  }
}
