// Standard output is for data, standard error for messages.

import type { WriteStream } from 'node:tty'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'

export interface Terminal {
  /** Standard error is a terminal. */
  readonly interactive: boolean
  readonly color: boolean
}

/** Properties of standard error. Colours follow NO_COLOR (no-color.org) and TERM=dumb. */
export function terminal(env: NodeJS.ProcessEnv = process.env): Terminal {
  const interactive = (process.stderr as Partial<WriteStream>).isTTY === true
  return { interactive, color: interactive && colourAllowed(env) }
}

/** Whether standard output may have colours. */
export function outputColor(env: NodeJS.ProcessEnv = process.env): boolean {
  return (process.stdout as Partial<WriteStream>).isTTY === true && colourAllowed(env)
}

/** Properties of standard output, for a command that formats its text. */
export interface Output {
  /** It is a terminal. */
  readonly interactive: boolean
  readonly color: boolean
  /** It accepts more than ASCII. */
  readonly unicode: boolean
  readonly columns: number
  readonly rows: number
}

/** Plain ASCII in 100 columns if it is not a terminal; also ASCII if the locale is not UTF-8. */
export function output(env: NodeJS.ProcessEnv = process.env): Output {
  const { isTTY = false, columns = 0, rows = 0 } = process.stdout as Partial<WriteStream>
  return {
    interactive: isTTY,
    color: outputColor(env),
    unicode: isTTY && env.TERM !== 'dumb' && isUtf8(env),
    columns: isTTY && columns > 0 ? columns : 100,
    rows: isTTY && rows > 0 ? rows : 24,
  }
}

/** The first variable that is set decides (locale(7)). */
function isUtf8({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  return /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
}

/** Width of standard output; 100 if it is not a terminal, and at most. */
export function outputColumns(): number {
  const { columns = 0 } = process.stdout as Partial<WriteStream>
  return columns > 0 ? Math.min(Math.max(columns, 60), 100) : 100
}

function colourAllowed(env: NodeJS.ProcessEnv): boolean {
  return !env.NO_COLOR && env.TERM !== 'dumb'
}

/** Resolves when all is written. A closed pipe is not an error, a full disk is. */
export function writeToStdout(bytes: Buffer, what: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, error => {
      if (!error || (error as NodeJS.ErrnoException).code === 'EPIPE') resolve()
      else reject(new StartError(`cannot write ${what}: ${error.message}`, ExitCode.general, error))
    })
  })
}

export function print(text: string): void {
  process.stdout.write(text)
}

/**
 * Resolves when standard output has accepted the text, so that a slow reader costs no memory. False: the reader has
 * gone.
 */
export function written(text: string): Promise<boolean> {
  return new Promise(resolve => process.stdout.write(text, error => resolve(!error)))
}

export function say(text: string): void {
  process.stderr.write(text)
}

/** A closed pipe (`svc doctor | head -1`, a log pipe that ended) is not an error. */
export function ignoreBrokenPipes(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
}
