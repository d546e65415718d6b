import { lchownSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseDuration } from '../../../foundation/lib/duration.ts'
import { errorText } from '../../../foundation/lib/logger.ts'
import { counted } from '../../../foundation/lib/number-text.ts'
import { ExitCode, exitCodeOf, StartError } from '../../../foundation/lib/start-error.ts'
import { signals as allSignals, type Signal } from '../../../foundation/model/signal.ts'
import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { deadLetterDirectory } from '../../../pipeline/disk/dead-letters.ts'
import { signalDirectory } from '../../../pipeline/disk/disk-layout.ts'
import { lockDirectory, lockHolder } from '../../../pipeline/disk/disk-lock.ts'
import type { RecordLog } from '../../../pipeline/disk/log.ts'
import { realFiles } from '../../../pipeline/disk/real-files.ts'
import { openSegmentLog } from '../../../pipeline/disk/segment-log.ts'
import { print, say, terminal } from '../terminal.ts'
import type { QueuePlace } from './place.ts'
import { add, batchesOf, type Pile } from './survey.ts'

export interface DropOptions {
  /** Dead letters instead of waiting batches. */
  readonly dead: boolean
  /** Only batches older than this duration or point in time. */
  readonly before: string | undefined
  /** Do not ask for confirmation. */
  readonly sure: boolean
}

/** What will be dropped of one signal, and how. */
interface Plan {
  readonly signal: Signal
  readonly pile: Pile
  carryOut(): Promise<void>
}

/** Permanently drops waiting batches or dead letters. Refuses while an agent has the queue open. */
export async function drop({ directory, signals }: QueuePlace, options: DropOptions): Promise<ExitCode> {
  const beforeMs = timeOf(options.before)
  const lock = lockQueue(directory)
  const logs: RecordLog[] = []
  try {
    const plans = signals
      .filter(signal => statSync(signalDirectory(directory, signal), { throwIfNoEntry: false }))
      .map(signal => {
        if (options.dead) return planOfDead(directory, signal, beforeMs)
        const log = openLog(directory, signal)
        logs.push(log)
        return planOfWaiting(log, signal, beforeMs)
      })
    const words = wordsOf(plans, directory, options.dead)
    if (plans.every(({ pile }) => pile.batches === 0)) {
      print(`Nothing to drop: ${words}.\n`)
      return ExitCode.ok
    }
    if (!options.sure && !(await agreed(words))) {
      print('Nothing was dropped.\n')
      return ExitCode.general
    }
    for (const plan of plans) await plan.carryOut()
    print(`Dropped ${words}.\n`)
    return ExitCode.ok
  } finally {
    for (const log of logs) await log.close()
    for (const signal of signals) leaveToOwner(signalDirectory(directory, signal))
    lock.release()
  }
}

/** The point in time of `--before`, milliseconds since the Unix epoch. */
function timeOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY
  const age = parseDuration(text)
  if (age !== undefined) return Date.now() - age
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new StartError(
    `--before "${text}" is neither a duration (2h, 30m, 7d) nor a time (2026-01-31T12:00:00Z)`,
    ExitCode.usage,
  )
}

function lockQueue(directory: string) {
  const refused = (why: string, code: ExitCode, cause?: unknown) =>
    new StartError(`cannot drop from the queue in ${directory}: ${why}`, code, cause)
  const holder = lockHolder(directory)
  if (holder)
    throw refused(
      `process ${holder.pid} has it open; stop that agent first (systemctl stop svc)`,
      ExitCode.general,
    )
  const native = loadNative()
  if (native instanceof Unsupported) throw refused(`${native.reason}; ${native.hint}`, ExitCode.general)
  try {
    const lock = lockDirectory(directory, fd => native.flock(fd))
    leaveToOwner(directory)
    return lock
  } catch (error) {
    throw refused(errorText(error), exitCodeOf(error), error)
  }
}

function openLog(directory: string, signal: Signal): RecordLog {
  const at = signalDirectory(directory, signal)
  try {
    return openSegmentLog({
      directory: at,
      files: realFiles,
      fsyncMs: () => 1000,
      kind: allSignals.indexOf(signal),
      fault: (what, error) => say(`${what}: ${errorText(error)}\n`),
    })
  } catch (error) {
    throw new StartError(
      `cannot open the queue of ${signal} in ${at}: ${errorText(error)}`,
      exitCodeOf(error),
      error,
    )
  }
}

function planOfWaiting(log: RecordLog, signal: Signal, beforeMs: number): Plan {
  if (beforeMs === Number.POSITIVE_INFINITY)
    return {
      signal,
      pile: { batches: log.records, items: log.items },
      async carryOut() {
        while (log.dropOldest());
        if (log.records > 0)
          throw new StartError(
            `cannot drop ${counted(log.records, 'batch', 'batches')} of ${signal}: their files cannot be removed`,
            ExitCode.general,
          )
      },
    }
  const pile: Pile = { batches: 0, items: 0 }
  const old: (readonly [seq: number, items: number])[] = []
  for (let record = log.readFrom(1); record; record = log.readFrom(record.seq + 1)) {
    if (record.timeMs >= beforeMs) continue
    add(pile, record.items)
    old.push([record.seq, record.items])
  }
  return {
    signal,
    pile,
    async carryOut() {
      for (const [seq, items] of old) log.settle(seq, items)
    },
  }
}

/** Dead letters are dropped by whole files: one with a batch that is too new stays. */
function planOfDead(directory: string, signal: Signal, beforeMs: number): Plan {
  const files = new Map<string, Pile>()
  const kept = new Set<string>()
  for (const { file, record } of batchesOf(directory, signal, true)) {
    const pile = files.get(file) ?? { batches: 0, items: 0 }
    files.set(file, pile)
    if (!record) continue
    add(pile, record.items)
    if (record.timeMs >= beforeMs) kept.add(file)
  }
  for (const file of kept) files.delete(file)
  const pile: Pile = { batches: 0, items: 0 }
  for (const { batches, items } of files.values()) {
    pile.batches += batches
    pile.items += items
  }
  return {
    signal,
    pile,
    async carryOut() {
      for (const file of files.keys()) unlinkSync(file)
    },
  }
}

function wordsOf(plans: readonly Plan[], directory: string, dead: boolean): string {
  const parts = plans
    .filter(({ pile }) => pile.batches > 0)
    .map(({ signal, pile }) => `${counted(pile.items, 'item')} of ${signal}`)
  const batches = plans.reduce((sum, { pile }) => sum + pile.batches, 0)
  const what = dead
    ? counted(batches, 'rejected batch', 'rejected batches')
    : counted(batches, 'batch', 'batches')
  return `${what}${parts.length > 0 ? ` (${parts.join(', ')})` : ''} in ${directory}`
}

async function agreed(words: string): Promise<boolean> {
  if (!terminal().interactive || !process.stdin.isTTY)
    throw new StartError(`cannot ask whether to drop ${words}: no terminal; use --yes`, ExitCode.usage)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await lines.question(`Drop ${words} permanently? [y/N] `)
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    lines.close()
  }
}

/** Gives files that root wrote here to the agent's user, who otherwise could not open them. */
function leaveToOwner(directory: string): void {
  if (process.getuid?.() !== 0) return
  const owner = statSync(directory, { throwIfNoEntry: false })
  if (!owner || owner.uid === 0) return
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isFile()) lchownSync(path, owner.uid, owner.gid)
    else if (entry.name === deadLetterDirectory) leaveToOwner(path)
  }
}
