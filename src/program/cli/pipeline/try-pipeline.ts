import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../../../config/index.ts'
import { createLogger, errorText } from '../../../foundation/lib/logger.ts'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { type Signal, signals } from '../../../foundation/model/signal.ts'
import {
  outcomeObject,
  outcomeText,
  painted,
  plain,
  summaryObject,
  summaryText,
} from '../../../pipeline/trial/report.ts'
import { type ItemOutcome, Trial, type TrialOptions } from '../../../pipeline/trial/trial.ts'
import type { Arguments } from '../arguments.ts'
import { configurationOf, exitOf, sayProblems } from '../configuration.ts'
import { outputColor, print, say } from '../terminal.ts'
import { requestsOf } from './input.ts'

/** Runs the items of a file through the configured processors and shows the results. */
export async function tryPipeline(args: Arguments): Promise<ExitCode> {
  const path = args.value('input')
  if (path === undefined)
    throw new StartError('svc pipeline test needs --input FILE (- for standard input)', ExitCode.usage)
  const only = signalOf(args.value('signal'))
  const loaded = configurationOf(args)
  if (loaded.problems.length > 0) {
    sayProblems(loaded)
    return exitOf(loaded)
  }
  const view = viewOf(args)
  const trials = new Map<Signal, Trial>()
  for await (const { signal, body, line } of requestsOf(path)) {
    if (only !== undefined && signal !== only) continue
    let trial = trials.get(signal)
    if (trial === undefined) {
      trial = trialOf(signal, loaded.config, view.onOutcome?.(signal))
      trials.set(signal, trial)
    }
    view.result(trial.run(body, line))
    if (!(await drained())) return ExitCode.ok
  }
  if (trials.size === 0) say(`${path === '-' ? 'standard input' : path} has no ${only ?? 'items'}\n`)
  view.summary({ trials: [...trials.values()], hasChanges: view.onOutcome !== undefined })
  return ExitCode.ok
}

function signalOf(word: string | undefined): Signal | undefined {
  if (word === undefined) return undefined
  const signal = signals.find(each => each === word.toLowerCase())
  if (signal) return signal
  const near = nearest(word, signals)
  throw new StartError(
    `unknown signal "${word}"; ${near ? `did you mean ${near}? The` : 'the'} signals are ${signals.join(', ')}`,
    ExitCode.usage,
  )
}

/** Destination and format of the result. */
interface View {
  /** Undefined: results of single items are not needed. */
  readonly onOutcome?: (signal: Signal) => (outcome: ItemOutcome) => void
  result(request: string | undefined): void
  summary(summary: Parameters<typeof summaryText>[0]): void
}

function viewOf(args: Arguments): View {
  if (args.has('json'))
    return {
      onOutcome: signal => outcome => print(`${JSON.stringify(outcomeObject(signal, outcome))}\n`),
      result: () => {},
      summary: summary => print(`${JSON.stringify(summaryObject(summary))}\n`),
    }
  if (args.has('diff')) {
    const paint = outputColor() ? painted : plain
    return {
      onOutcome: signal => outcome => print(outcomeText(signal, outcome, paint)),
      result: () => {},
      summary: summary => print(summaryText(summary)),
    }
  }
  return {
    result: request => print(request === undefined ? '' : `${request}\n`),
    summary: summary => say(summaryText(summary)),
  }
}

function trialOf(signal: Signal, { pipeline }: Config, onOutcome: TrialOptions['onOutcome']): Trial {
  const env = {
    log: createLogger({ level: 'warn', format: 'text', write: say }),
    installKey: keyIn(dirname(pipeline.export.queue.directory)),
  }
  try {
    return new Trial(signal, { settings: pipeline, env, ...(onOutcome && { onOutcome }) })
  } catch (error) {
    throw new StartError(`cannot apply the configuration: ${errorText(error)}`, ExitCode.usage, error)
  }
}

/** The key of this installation if it is readable, so that hashes match the agent's; otherwise one for this run. */
function keyIn(directory: string): () => Uint8Array {
  let key: Uint8Array | undefined
  return () => {
    if (key === undefined)
      try {
        key = readFileSync(join(directory, 'install.key'))
      } catch {
        say('the key for hashes cannot be read here, so hashes differ from those of the agent\n')
        key = randomBytes(32)
      }
    return key
  }
}

/** Waits for a slow reader. False: it has gone. */
async function drained(): Promise<boolean> {
  const { stdout } = process
  // If the reader goes during the wait, this rejects and the stream becomes unwritable.
  if (stdout.writable && stdout.writableNeedDrain) await once(stdout, 'drain').catch(() => {})
  return stdout.writable
}
