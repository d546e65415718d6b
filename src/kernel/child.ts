import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

/** A program that runs, with its standard input and output. */
export type Child = ChildProcessByStdio<Writable, Readable, null>

/** A program that runs and only tells, with its standard output and error output. */
export type TellingChild = ChildProcessByStdio<null, Readable, Readable>

// Without a shell, and without any of the agent's environment. Keeps no agent from ending.
const surroundings = { env: {}, cwd: '/' }

/**
 * Starts a program of the agent's own, without arguments, and connected by nothing but its standard input and output. A
 * failure to start is thrown, or comes as an `error` event.
 */
export function startChild(program: string): Child {
  const child = spawn(program, [], { ...surroundings, stdio: ['pipe', 'pipe', 'ignore'] })
  return letGo(child, program, [child.stdin, child.stdout])
}

/**
 * Starts a program of the host that tells what it is asked for by its arguments, such as `journalctl`, with nothing to
 * read. Both of its outputs have to be read. A failure to start is thrown, or comes as an `error` event.
 */
export function startTeller(program: string, args: readonly string[]): TellingChild {
  const child = spawn(program, args, { ...surroundings, stdio: ['ignore', 'pipe', 'pipe'] })
  return letGo(child, program, [child.stdout, child.stderr])
}

function letGo<C extends Child | TellingChild>(child: C, program: string, streams: readonly unknown[]): C {
  // Where there are no more file descriptors, the error comes by an event and there are no streams.
  if (streams.includes(undefined)) {
    child.on('error', () => undefined)
    throw new Error(`cannot start ${program}: too many open files`)
  }
  child.unref()
  for (const stream of streams) (stream as Socket).unref()
  return child
}
