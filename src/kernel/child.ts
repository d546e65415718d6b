import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { lowerPriority } from '../foundation/lib/priority.ts'

/** A program that runs, with its standard input and output. */
export type Child = ChildProcessByStdio<Writable, Readable, null>

/** A program that runs and only tells, with its standard output and error output. */
export type OutputChild = ChildProcessByStdio<null, Readable, Readable>

/** A program that runs and is asked at the other end of a socket. */
export type AnsweringChild = ChildProcess

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
export function startForOutput(program: string, args: readonly string[]): OutputChild {
  const child = spawn(program, args, { ...surroundings, stdio: ['ignore', 'pipe', 'pipe'] })
  return letGo(child, program, [child.stdout, child.stderr])
}

/**
 * Starts a program of the agent's own, without arguments, whose input and output are one end of a socket: who asks it reads
 * and writes the other end. `priority`: that of work which may wait, or the agent's own. Throws where it cannot be started.
 */
export function startAnswering(
  program: string,
  end: number,
  priority: 'background' | 'own' = 'background',
): AnsweringChild {
  const child = spawn(program, [], { ...surroundings, stdio: [end, end, 'ignore'] })
  child.on('error', () => undefined)
  if (child.pid === undefined) throw new Error(`cannot start ${program}`)
  if (priority === 'background') lowerPriority(child.pid)
  child.unref()
  return child
}

function letGo<C extends Child | OutputChild>(child: C, program: string, streams: readonly unknown[]): C {
  // Where there are no more file descriptors, the error comes by an event and there are no streams.
  if (streams.includes(undefined)) {
    child.on('error', () => undefined)
    throw new Error(`cannot start ${program}: too many open files`)
  }
  if (child.pid !== undefined) lowerPriority(child.pid)
  child.unref()
  for (const stream of streams) (stream as Socket).unref()
  return child
}
