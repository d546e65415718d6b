// Finds the files of a log between one scan and the next, or since svc last ran.

import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { realPath } from '../../foundation/lib/optional-files.ts'
import type { Turn } from '../../foundation/lib/turn.ts'
import { type IsHeldPath, statsOf } from './file-finder.ts'
import { type Fingerprint, type LineBuffer, LogFile } from './log-file.ts'
import type { LogPositions, Position } from './log-positions.ts'
import { byAge, type Sibling, siblings, tickMs } from './rotation.ts'

/** Maximum waiting files that are kept open, so that they can still be read after a rotator removes them. */
const maxKeptOpen = 32
/** Tolerance for the modification time of a copy, in milliseconds: the clock of a file system may lag. */
const clockMs = 1000
/** Number of first bytes that identify a file, whenever it was changed. */
const distinctBytes = 64

export interface RotationChain {
  /** Files to read before the current one, in this order. */
  readonly before: LogFile[]
  /** Number of files with lost data: compressed or removed before they were read. */
  readonly lost: number
  /** Compressed file, for the hint. */
  readonly compressed: string
  /** Saved positions whose files are gone. */
  readonly gone: readonly Position[]
}

export interface RotationQuery {
  readonly path: string
  /** File at the path now. */
  readonly current: LogFile
  /** File at the path at the last scan, if it is still followed. */
  readonly last: LogFile | undefined
  /** Saved positions of the files of this path, oldest first. */
  readonly known: readonly Position[]
  /** Whether `current` was known before. */
  readonly isKnown: boolean
  readonly positions: LogPositions
  readonly buffer: LineBuffer
  readonly turn: Turn
  /** Whether a file is already followed. */
  isFollowed(stats: Stats): boolean
  /** Whether a path is that of another log. */
  isLog(path: string): boolean
  readonly isHeld: IsHeldPath
  /** Whether there is time for one more scan. */
  mayLookAgain(): boolean
}

/** Maximum scans of a directory with ongoing renames; the last one counts. */
const maxLooks = 6

/**
 * Files to read before the current file of a log. A rotator renames one file after the other: a scan in the middle of
 * it misses some names, and those files would never be read. So the scan is repeated until the directory is stable.
 */
export async function rotationChain(question: RotationQuery): Promise<RotationChain> {
  for (let looks = 1; ; looks++) {
    const changedMs = directoryChangedMs(question)
    const isSettled = hasSettled(changedMs)
    const result = await asFound(question)
    const stoodStill = changedMs === directoryChangedMs(question) && isSettled
    if (stoodStill || looks === maxLooks || !question.mayLookAgain()) return result
    for (const file of result.before) file.close()
    question.turn.end()
    await sleep(tickMs)
    question.turn.begin()
  }
}

/**
 * Whether another change would have another time: changes within one tick may have the same. A time in the future is of
 * another clock.
 */
function hasSettled(changedMs: number): boolean {
  const ageMs = Date.now() - changedMs
  return ageMs > tickMs || ageMs < 0
}

/** Change time of the log's directory (ctime, which users cannot set), in milliseconds; 0 if unknown. */
function directoryChangedMs({ path, isHeld }: RotationQuery): number {
  const directory = dirname(realPath(path, path))
  return isHeld(directory) ? 0 : (statsOf(directory)?.ctimeMs ?? 0)
}

async function asFound(question: RotationQuery): Promise<RotationChain> {
  const { current, last, known, isKnown } = question
  // Files with saved positions are kept, regardless of their current owner.
  const all = await siblings(
    question.path,
    question.turn,
    question.isHeld,
    stats => isOwn(question, stats) || known.some(({ inode }) => inode === stats.ino),
  )
  const found = all.filter(({ stats }) => isOwn(question, stats))
  const before: [Sibling, LogFile][] = []
  const lastKnown = known.at(-1)
  const wasEmptied = last === undefined && !isKnown && lastKnown?.inode === current.inode
  /** Files read to their end. */
  const done = new Set<Sibling>()
  let reference: Sibling | undefined
  if (last !== undefined) reference = found.find(({ stats }) => last.isAt(stats))
  for (const sibling of found) {
    if (!isFree(question, sibling)) continue
    const position = positionOf(question, sibling)
    const file = position && opened(sibling, position, question.buffer)
    if (file === undefined || position === undefined) continue
    const isLast = last === undefined && !isKnown && position === lastKnown
    if (isLast) reference = sibling
    file.goTo(position.offset)
    // The last one may still be written.
    if (file.size > position.offset || isLast) before.push([sibling, file])
    else {
      file.close()
      done.add(sibling)
    }
  }
  const gone = known.filter(
    one => one.inode !== last?.inode && !all.some(({ stats }) => stats.ino === one.inode),
  )
  if (isKnown) return { before: ordered(before), lost: 0, compressed: '', gone }
  const sinceMs =
    reference?.stats.mtimeMs ?? last?.modifiedMs ?? lastKnown?.currentMs ?? Number.POSITIVE_INFINITY
  // A file with other first bytes was written since, whether it is a different file or the same one.
  const isNewer = (one: Sibling) =>
    reference === undefined
      ? one.stats.mtimeMs >= sinceMs - tickMs || one.stats.ino === lastKnown?.inode
      : byAge(one, reference) > 0
  // The current file may have been renamed during the scan: later files follow it, and the next scan finds them.
  const renamed = found.find(({ stats }) => current.isAt(stats))
  const isLater = (one: Sibling) => renamed !== undefined && byAge(one, renamed) > 0
  const copy = wasEmptied ? copyOf(question, found, lastKnown, lastKnown.currentMs - clockMs) : undefined
  if (copy !== undefined) {
    const [sibling, file] = copy
    if (file.size > file.offset) before.push(copy)
    else file.close()
    done.add(sibling)
  }
  for (const sibling of found) {
    if (!sibling.isRotated || !isNewer(sibling) || isLater(sibling) || !isFree(question, sibling)) continue
    if (done.has(sibling) || before.some(([, file]) => file.isAt(sibling.stats))) continue
    const file = opened(sibling, undefined, question.buffer)
    if (file !== undefined) before.push([sibling, file])
  }
  const packed = found.filter(one => one.isCompressed && one.stats.mtimeMs > sinceMs)
  const isGone =
    last === undefined &&
    reference === undefined &&
    copy === undefined &&
    !found.some(one => one.isCompressed)
  return {
    before: ordered(before),
    lost: packed.length + Number(packed.length === 0 && isGone && lastKnown !== undefined && !wasEmptied),
    compressed: packed[0]?.path ?? '',
    gone,
  }
}

/**
 * Copy of a file that was truncated after the copy (`copytruncate` of logrotate), from the last read position.
 * Undefined if there is none, or if all of it was read.
 */
export async function copyBefore(
  question: RotationQuery,
  was: Fingerprint,
  offset: number,
  sinceMs: number,
): Promise<LogFile | undefined> {
  if (was.length === 0) return undefined
  const found = await siblings(question.path, question.turn, question.isHeld, stats => isOwn(question, stats))
  const remembered = { fingerprint: was.digest, fingerprintLength: was.length, offset }
  const file = copyOf(question, found, remembered, sinceMs - clockMs)?.[1]
  if (file === undefined || file.size > offset) return file
  file.close()
  return undefined
}

function copyOf(
  question: RotationQuery,
  found: readonly Sibling[],
  remembered: Pick<Position, 'fingerprint' | 'fingerprintLength' | 'offset'>,
  sinceMs: number,
): [Sibling, LogFile] | undefined {
  const { fingerprintLength, offset } = remembered
  if (fingerprintLength === 0) return undefined
  const candidates = found
    .filter(one => one.isRotated && !one.isCompressed && one.stats.size >= offset)
    .filter(one => one.stats.mtimeMs >= sinceMs || fingerprintLength >= distinctBytes)
    .filter(one => isFree(question, one) && positionOf(question, one) === undefined)
    .sort(byAge)
  for (const sibling of candidates.reverse()) {
    const file = opened(sibling, remembered, question.buffer)
    if (file === undefined) continue
    file.goTo(offset)
    return [sibling, file]
  }
  return undefined
}

/**
 * Others with write access to the directory can create files with rotated names: those would delay and forge the log.
 */
function isOwn({ current, last }: RotationQuery, stats: Stats): boolean {
  const { uid } = stats
  return uid === 0 || uid === current.user || uid === last?.user || (last?.isAt(stats) ?? false)
}

/** Whether a file is not read yet, and belongs to no other log. */
function isFree(
  { current, isFollowed, isLog }: RotationQuery,
  { path, stats, isCompressed }: Sibling,
): boolean {
  return !isCompressed && !current.isAt(stats) && !isFollowed(stats) && !isLog(path)
}

/** Saved position of a file. The number of its device may change at a reboot. */
function positionOf({ positions, known }: RotationQuery, { stats }: Sibling): Position | undefined {
  return positions.at(stats.dev, stats.ino) ?? known.find(({ inode }) => inode === stats.ino)
}

/** Saved position of an open file, by its inode number or path; undefined if it is a different file. */
export function remembered(
  positions: LogPositions,
  file: LogFile,
  known: readonly Position[],
): Position | undefined {
  const position = positions.at(file.device, file.inode) ?? known.find(({ inode }) => inode === file.inode)
  if (position === undefined || file.size < position.offset) return undefined
  const { fingerprint: digest, fingerprintLength: length } = position
  return file.beginsAs({ digest, length }) ? position : undefined
}

/** Opens a file; undefined if it is gone or different. */
function opened(
  sibling: Sibling,
  remembered: Pick<Position, 'fingerprint' | 'fingerprintLength' | 'offset'> | undefined,
  buffer: LineBuffer,
): LogFile | undefined {
  const file = new LogFile(sibling.path, sibling.stats)
  file.isRotated = true
  // It was the current file until then, or later.
  file.currentMs = Math.floor(sibling.stats.mtimeMs)
  if (!file.open(buffer)) return undefined
  if (remembered === undefined) return file
  const { fingerprint, fingerprintLength, offset } = remembered
  if (file.size >= offset && file.beginsAs({ digest: fingerprint, length: fingerprintLength })) return file
  file.close()
  return undefined
}

function ordered(files: [Sibling, LogFile][]): LogFile[] {
  const sorted = files.sort(([one], [other]) => byAge(one, other)).map(([, file]) => file)
  for (const file of sorted.slice(maxKeptOpen)) file.close()
  return sorted
}

/** Current path of a renamed file; undefined if it is no longer next to its log. */
export async function currentPath(
  path: string,
  file: LogFile,
  { turn, isHeld }: Pick<RotationQuery, 'turn' | 'isHeld'>,
): Promise<string | undefined> {
  if (isThere(path, file)) return path
  const [found] = await siblings(path, turn, isHeld, stats => file.isAt(stats))
  return found?.path
}

function isThere(path: string, file: LogFile): boolean {
  const stats = statsOf(path)
  return stats !== undefined && file.isAt(stats)
}
