import { closeSync, openSync, writeSync } from 'node:fs'
import { errorText } from '../../../foundation/lib/logger.ts'
import { counted } from '../../../foundation/lib/number-text.ts'
import { ExitCode, exitCodeOf, StartError } from '../../../foundation/lib/start-error.ts'
import { decompressSync } from '../../../pipeline/exporters/compression.ts'
import { requestToJson } from '../../../pipeline/exporters/otlp/json.ts'
import { say } from '../terminal.ts'
import type { QueuePlace } from './place.ts'
import { add, batchesOf, type Pile } from './survey.ts'

const pause = new Int32Array(new SharedArrayBuffer(4))
/** Reasons of rejected batches to print in full. */
const mostReasons = 10

/**
 * Copies waiting batches or dead letters to a new file: one OTLP JSON request per line, in the format of the
 * OpenTelemetry file exporter. The queue stays as it is.
 */
export function exportQueue(
  { directory, signals }: QueuePlace,
  to: string | undefined,
  dead: boolean,
): ExitCode {
  if (to === undefined)
    throw new StartError('svc queue export needs --to FILE (- for standard output)', ExitCode.usage)
  const fd = to === '-' ? 1 : openNew(to)
  const copied: Pile = { batches: 0, items: 0 }
  const reasons = new Map<string, number>()
  let failed = 0
  try {
    for (const signal of signals)
      for (const { file, offset, record, settled, damage, why } of batchesOf(directory, signal, dead)) {
        if (damage && !damage.torn) failed++
        if (!record || settled) continue
        try {
          const line = requestToJson(signal, decompressSync(record.encoding, record.body))
          // The reader has closed the pipe: `svc queue export --to - | head`.
          if (!writeAll(fd, `${line}\n`, to)) return ExitCode.ok
          add(copied, record.items)
          if (why !== undefined) reasons.set(why, (reasons.get(why) ?? 0) + 1)
        } catch (error) {
          if (error instanceof StartError) throw error
          failed++
          say(`left out: ${file} at byte ${offset}: ${errorText(error)}\n`)
        }
      }
  } finally {
    if (fd !== 1) closeSync(fd)
  }
  for (const [why, batches] of [...reasons].slice(0, mostReasons))
    say(`${counted(batches, 'batch', 'batches')} rejected: ${JSON.stringify(why)}\n`)
  const left = failed > 0 ? `; ${counted(failed, 'place')} could not be read (svc queue verify)` : ''
  say(
    `copied ${counted(copied.batches, 'batch', 'batches')} with ${counted(copied.items, 'item')} to ${to === '-' ? 'standard output' : to}${left}\n`,
  )
  return failed === 0 ? ExitCode.ok : ExitCode.exporting
}

/** Private: the content may be confidential. */
function openNew(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new StartError(`cannot write ${path}: the file exists; choose another name`, ExitCode.usage)
    throw failed(path, error)
  }
}

/** False if the reader of a pipe has gone. */
function writeAll(fd: number, text: string, to: string): boolean {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EPIPE') return false
      if (code !== 'EAGAIN') throw failed(to, error)
      // A pipe with a slow reader.
      Atomics.wait(pause, 0, 0, 10)
    }
  }
  return true
}

function failed(to: string, error: unknown): StartError {
  const code = exitCodeOf(error, ExitCode.exporting)
  return new StartError(`cannot write ${to}: ${errorText(error)}`, code, error)
}
