import { bytesText } from '../../../foundation/lib/number-text.ts'
import { ExitCode } from '../../../foundation/lib/start-error.ts'
import { type LockHolder, lockHolder } from '../../../pipeline/disk/disk-lock.ts'
import { print } from '../terminal.ts'
import type { QueuePlace } from './place.ts'
import { type Survey, survey } from './survey.ts'

/** Prints the content of the queue, by signal. */
export function list({ directory, signals }: QueuePlace, json: boolean): ExitCode {
  const holder = lockHolder(directory)
  const surveys = signals.map(signal => ({ signal, ...survey(directory, signal, holder !== undefined) }))
  if (json) {
    const bySignal = Object.fromEntries(surveys.map(each => [each.signal, documentOf(each)]))
    print(`${JSON.stringify({ directory, agent: holder ?? null, signals: bySignal }, null, 2)}\n`)
    return ExitCode.ok
  }
  const now = Date.now()
  const rows = surveys.map(({ signal, waiting, dead, bytes, oldestMs, faults }) => [
    signal,
    String(waiting.batches),
    String(waiting.items),
    bytesText(bytes),
    oldestMs === 0 ? '-' : ageText(now - oldestMs),
    String(dead.batches),
    faults.length === 0 ? 'none' : `${faults.length} (svc queue verify)`,
  ])
  print(`${headOf(directory, holder)}\n\n${table(rows)}`)
  return ExitCode.ok
}

function headOf(directory: string, holder: LockHolder | undefined): string {
  const who = holder ? `the agent with pid ${holder.pid} has it open` : 'no agent has it open'
  return `The queue in ${directory}: ${who}.`
}

const heads = ['SIGNAL', 'BATCHES', 'ITEMS', 'ON DISK', 'OLDEST', 'REFUSED', 'DAMAGE']

/** Numbers right-aligned, words left-aligned. */
function table(rows: readonly (readonly string[])[]): string {
  const lines = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  const text = lines.map(line =>
    line
      .map((cell, column) =>
        column === 0 || column === heads.length - 1
          ? cell.padEnd(widths[column]!)
          : cell.padStart(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  )
  return `${text.join('\n')}\n`
}

function documentOf({ waiting, dead, bytes, oldestMs, faults }: Survey) {
  return {
    batches: waiting.batches,
    items: waiting.items,
    bytes_on_disk: bytes,
    oldest: oldestMs === 0 ? null : new Date(oldestMs).toISOString(),
    rejected: dead,
    damaged_places: faults.length,
  }
}

/** An age in its two largest units: `3h12m`. */
function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${seconds % 60}s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours}h${minutes % 60}m`
  return `${Math.floor(hours / 24)}d${hours % 24}h`
}
