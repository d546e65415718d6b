import { statSync } from 'node:fs'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { ExitCode, exitCodeOf, StartError } from '../../../foundation/lib/start-error.ts'
import { type Signal, signals } from '../../../foundation/model/signal.ts'
import { layoutVersion } from '../../../pipeline/disk/disk-layout.ts'
import type { Arguments } from '../arguments.ts'
import { configurationOf, exitOf, sayProblems } from '../configuration.ts'

/** The directory and signals that a command works on. */
export interface QueuePlace {
  readonly directory: string
  readonly signals: readonly Signal[]
}

/** From the flags, otherwise from the configuration. Throws a readable error if there is no queue. */
export function placeOf(args: Arguments): QueuePlace {
  const directory = args.value('directory') ?? configuredDirectory(args)
  const word = args.value('signal')
  const signal = signals.find(each => each === word?.toLowerCase())
  if (word !== undefined && !signal) {
    const near = nearest(word, signals)
    const meant = near ? `did you mean ${near}? The` : 'the'
    throw new StartError(
      `unknown signal "${word}"; ${meant} signals are ${signals.join(', ')}`,
      ExitCode.usage,
    )
  }
  checkDirectory(directory)
  return { directory, signals: signal ? [signal] : signals }
}

function configuredDirectory(args: Arguments): string {
  const loaded = configurationOf(args)
  if (loaded.problems.length > 0) {
    sayProblems(loaded)
    throw new StartError(
      'the configuration is invalid; select the queue with --directory DIR',
      exitOf(loaded),
    )
  }
  return loaded.config.pipeline.export.queue.directory
}

function checkDirectory(directory: string): void {
  const failed = (why: string, cause?: unknown) =>
    new StartError(`cannot read the queue in ${directory}: ${why}`, exitCodeOf(cause), cause)
  try {
    if (statSync(`${directory}/${layoutVersion}`, { throwIfNoEntry: false })?.isDirectory()) return
    if (!statSync(directory, { throwIfNoEntry: false }))
      throw failed('no such directory; select the right one with --directory DIR or --config FILE')
    throw failed(`it contains no queue (no directory ${layoutVersion})`)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw failed(error instanceof Error ? error.message : String(error), error)
  }
}
