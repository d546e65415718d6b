import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../../foundation/lib/logger.ts'
import { ExitCode, exitCodeOf, StartError } from '../../../foundation/lib/start-error.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { signalDirectory } from '../../../pipeline/disk/disk-layout.ts'
import { type Inspected, readDeadLetters, readSegments } from '../../../pipeline/disk/inspect-log.ts'
import { realFiles } from '../../../pipeline/disk/real-files.ts'

/** Batches in files, and their items. */
export interface Pile {
  batches: number
  items: number
}

/** The queue of one signal. */
export interface Survey {
  readonly waiting: Pile
  readonly dead: Pile
  /** Of all files, including delivered batches not yet removed. */
  readonly bytes: number
  /** When the oldest waiting batch was written, milliseconds since the Unix epoch; 0: none waits. */
  readonly oldestMs: number
  /** Damaged or unreadable places. */
  readonly faults: readonly Inspected[]
}

/** Reads all of a signal's queue without changes. A half-written end is not a fault while an agent writes there. */
export function survey(directory: string, signal: Signal, agentRuns: boolean): Survey {
  const waiting: Pile = { batches: 0, items: 0 }
  const dead: Pile = { batches: 0, items: 0 }
  const faults: Inspected[] = []
  let oldestMs = 0
  const note = (found: Inspected): void => {
    if (found.unreadable !== undefined || (found.damage && !(agentRuns && found.damage.torn)))
      faults.push(found)
  }
  for (const found of batchesOf(directory, signal, false)) {
    note(found)
    if (!found.record || found.settled) continue
    add(waiting, found.record.items)
    if (oldestMs === 0 || found.record.timeMs < oldestMs) oldestMs = found.record.timeMs
  }
  for (const found of batchesOf(directory, signal, true)) {
    note(found)
    if (found.record) add(dead, found.record.items)
  }
  return { waiting, dead, bytes: bytesBelow(signalDirectory(directory, signal)), oldestMs, faults }
}

/** The content of a signal's files. Throws a readable error if they cannot be listed. */
export function* batchesOf(directory: string, signal: Signal, dead: boolean): Generator<Inspected> {
  const at = signalDirectory(directory, signal)
  try {
    yield* dead ? readDeadLetters(at, realFiles) : readSegments(at, realFiles)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return
    const exit = exitCodeOf(error)
    const hint = exit === ExitCode.permission ? '; run this as the user of svc or as root' : ''
    throw new StartError(
      `cannot read the queue of ${signal} in ${at}: ${errorText(error)}${hint}`,
      exit,
      error,
    )
  }
}

export function add(pile: Pile, items: number): void {
  pile.batches++
  pile.items += items
}

function bytesBelow(directory: string): number {
  let bytes = 0
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      bytes += entry.isDirectory() ? bytesBelow(path) : (statSync(path, { throwIfNoEntry: false })?.size ?? 0)
    }
  } catch {
    // Removed in the meantime; read errors have been reported by then.
  }
  return bytes
}
