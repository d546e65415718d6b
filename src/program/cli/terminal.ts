// Standard output is for data, standard error for talk.

import type { WriteStream } from 'node:tty'

export interface Terminal {
  /** A person reads standard error. */
  readonly interactive: boolean
  readonly color: boolean
}

/** What standard error is. Colours follow NO_COLOR (no-color.org) and TERM=dumb. */
export function terminal(env: NodeJS.ProcessEnv = process.env): Terminal {
  const interactive = (process.stderr as Partial<WriteStream>).isTTY === true
  return { interactive, color: interactive && colourAllowed(env) }
}

/** Whether what goes to standard output may carry colours. */
export function outputColor(env: NodeJS.ProcessEnv = process.env): boolean {
  return (process.stdout as Partial<WriteStream>).isTTY === true && colourAllowed(env)
}

/** What standard output is, for a command that lays its text out. */
export interface Output {
  /** A person reads it. */
  readonly interactive: boolean
  readonly color: boolean
  /** It may carry more than ASCII. */
  readonly unicode: boolean
  readonly columns: number
  readonly rows: number
}

/** Plain ASCII in 100 columns where it is no terminal; ASCII, too, where the locale is not UTF-8. */
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

/** The first of them that is set decides (locale(7)). */
function isUtf8({ LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  return /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
}

/** Columns of what reads standard output; 100 where it is no terminal, and at most. */
export function outputColumns(): number {
  const { columns = 0 } = process.stdout as Partial<WriteStream>
  return columns > 0 ? Math.min(Math.max(columns, 60), 100) : 100
}

function colourAllowed(env: NodeJS.ProcessEnv): boolean {
  return !env.NO_COLOR && env.TERM !== 'dumb'
}

export function print(text: string): void {
  process.stdout.write(text)
}

/**
 * Resolves when standard output has taken the text, so that a slow reader costs no memory. False: there is no reader
 * any longer.
 */
export function written(text: string): Promise<boolean> {
  return new Promise(resolve => process.stdout.write(text, error => resolve(!error)))
}

export function say(text: string): void {
  process.stderr.write(text)
}

/** A reader that has gone (`svc doctor | head -1`, a log pipe that ended) is no failure of ours. */
export function ignoreBrokenPipes(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
}
