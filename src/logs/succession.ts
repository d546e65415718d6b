// Finds the files that a log was written to between one look and the next, or while nobody looked.

import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { realPath } from '../lib/if-there.ts'
import type { Turn } from '../lib/turn.ts'
import { type HoldsPath, statsOf } from './file-finder.ts'
import { type Fingerprint, type LineBuffer, LogFile } from './log-file.ts'
import type { LogPositions, Position } from './log-positions.ts'
import { byAge, type Sibling, siblings, tickMs } from './rotation.ts'

/** Files that are kept open before their turn comes: what a rotator removes can still be read. */
const maxKeptOpen = 32
/** Copies were changed last when they were made, which a clock of the file system may tell a little too early. */
const clockMs = 1000
/** First bytes that are enough to know a file by, whenever it was changed. */
const distinctBytes = 64

export interface Succession {
  /** To be read before the current one, in this order. */
  readonly before: LogFile[]
  /** Files of which something is lost: packed or removed before it was read. */
  readonly lost: number
  /** Why, for who repairs it. */
  readonly packed: string
  /** Remembered, and no longer there. */
  readonly gone: readonly Position[]
}

export interface Question {
  readonly path: string
  /** What is at the path now. */
  readonly current: LogFile
  /** What was at the path when it was last looked at, where it is followed still. */
  readonly last: LogFile | undefined
  /** What is remembered of the files of this path, oldest first. */
  readonly known: readonly Position[]
  /** `current` was known before. */
  readonly isKnown: boolean
  readonly positions: LogPositions
  readonly buffer: LineBuffer
  readonly turn: Turn
  /** Is followed already. */
  isFollowed(stats: Stats): boolean
  /** Is the path of another log. */
  isLog(path: string): boolean
  readonly isHeld: HoldsPath
  /** Whether whoever waits for the answer has the time for one more look. */
  mayLookAgain(): boolean
}

/** Looks at a directory in which something is renamed meanwhile, of which the last one counts. */
const maxLooks = 6

/**
 * What has to be read before the current file of a log. A rotator renames one file after the other: who looks in the midst of
 * it sees names of which some are missing, and would never ask for those files again. So it is looked at until it stood still.
 */
export async function succession(question: Question): Promise<Succession> {
  for (let looks = 1; ; looks++) {
    const changedMs = directoryChangedMs(question)
    const result = await asFound(question)
    if (stoodStill(changedMs, directoryChangedMs(question)) || looks === maxLooks || !question.mayLookAgain())
      return result
    for (const file of result.before) file.close()
    question.turn.end()
    await sleep(tickMs)
    question.turn.begin()
  }
}

/** What changes within one tick of the clock may have one time. A time to come is that of another clock. */
function stoodStill(beforeMs: number, afterMs: number): boolean {
  const ageMs = Date.now() - afterMs
  return beforeMs === afterMs && (ageMs > tickMs || ageMs < 0)
}

/** When a name in the directory of the log was last made, changed or taken away, which nobody can set; 0: not known. */
function directoryChangedMs({ path, isHeld }: Question): number {
  const directory = dirname(realPath(path, path))
  return isHeld(directory) ? 0 : (statsOf(directory)?.ctimeMs ?? 0)
}

async function asFound(question: Question): Promise<Succession> {
  const { current, last, known, isKnown } = question
  // What is remembered is not gone, whoever has it now.
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
  /** Read to the end. */
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
    // The last one may still be written to.
    if (file.size > position.offset || isLast) before.push([sibling, file])
    else {
      file.close()
      done.add(sibling)
    }
  }
  const gone = known.filter(
    one => one.inode !== last?.inode && !all.some(({ stats }) => stats.ino === one.inode),
  )
  if (isKnown) return { before: ordered(before), lost: 0, packed: '', gone }
  const sinceMs =
    reference?.stats.mtimeMs ?? last?.modifiedMs ?? lastKnown?.currentMs ?? Number.POSITIVE_INFINITY
  // What begins otherwise than it did was written since, whether it is another file or the same one.
  const isNewer = (one: Sibling) =>
    reference === undefined
      ? one.stats.mtimeMs >= sinceMs - tickMs || one.stats.ino === lastKnown?.inode
      : byAge(one, reference) > 0
  const copy = wasEmptied ? copyOf(question, found, lastKnown, lastKnown.currentMs - clockMs) : undefined
  if (copy !== undefined) {
    const [sibling, file] = copy
    if (file.size > file.offset) before.push(copy)
    else file.close()
    done.add(sibling)
  }
  for (const sibling of found) {
    if (!sibling.isRotated || !isNewer(sibling) || !isFree(question, sibling)) continue
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
    packed: packed[0]?.path ?? '',
    gone,
  }
}

/**
 * A file that was emptied was copied before (`copytruncate` of logrotate): the copy, from where the file was not read.
 * Undefined where there is none, or where nothing of it is left.
 */
export async function copyBefore(
  question: Question,
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
  question: Question,
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

/** Who else may write to the directory can name files as rotated ones: they would hold the log up, and speak in its name. */
function isOwn({ current, last }: Question, stats: Stats): boolean {
  const { uid } = stats
  return uid === 0 || uid === current.user || uid === last?.user || (last?.isAt(stats) ?? false)
}

/** Nobody reads it yet, and nobody else will. */
function isFree({ current, isFollowed, isLog }: Question, { path, stats, isCompressed }: Sibling): boolean {
  return !isCompressed && !current.isAt(stats) && !isFollowed(stats) && !isLog(path)
}

/** What is remembered of a file. The number of its device may be another one since the host was started again. */
function positionOf({ positions, known }: Question, { stats }: Sibling): Position | undefined {
  return positions.at(stats.dev, stats.ino) ?? known.find(({ inode }) => inode === stats.ino)
}

/** How far an open file was read before, by its number or what is known of its path; undefined where it is another one. */
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

/** Undefined where it is no longer there, or is not what is remembered. */
function opened(
  sibling: Sibling,
  remembered: Pick<Position, 'fingerprint' | 'fingerprintLength' | 'offset'> | undefined,
  buffer: LineBuffer,
): LogFile | undefined {
  const file = new LogFile(sibling.path, sibling.stats)
  file.isRotated = true
  // It was the current one until then, or later.
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

/** Where a file is now that was renamed; undefined where it is not beside its log any more. */
export async function whereabouts(
  path: string,
  file: LogFile,
  { turn, isHeld }: Pick<Question, 'turn' | 'isHeld'>,
): Promise<string | undefined> {
  if (isThere(path, file)) return path
  const [found] = await siblings(path, turn, isHeld, stats => file.isAt(stats))
  return found?.path
}

function isThere(path: string, file: LogFile): boolean {
  const stats = statsOf(path)
  return stats !== undefined && file.isAt(stats)
}
