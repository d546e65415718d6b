import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { lowerPriority } from '../foundation/lib/priority.ts'

/** A running program, with its standard input and output. */
export type Child = ChildProcessByStdio<Writable, Readable, null>

/** A running program without input, with its standard output and error output. */
export type OutputChild = ChildProcessByStdio<null, Readable, Readable>

/** A running program that answers at the other end of a socket. */
export type AnsweringChild = ChildProcess

// No shell, and no environment of the agent. Children do not keep the agent running.
const surroundings = { env: {}, cwd: '/' }

/**
 * Starts a program of the agent, without arguments, connected only by its standard input and output. A failure to start
 * is thrown, or emitted as an `error` event.
 */
export function startChild(program: string): Child {
  const child = spawn(program, [], { ...surroundings, stdio: ['pipe', 'pipe', 'ignore'] })
  return letGo(child, program, [child.stdin, child.stdout])
}

/**
 * Starts a program of the host that prints what its arguments request, such as `journalctl`, without input. Both
 * outputs must be read. A failure to start is thrown, or emitted as an `error` event.
 */
export function startForOutput(program: string, args: readonly string[]): OutputChild {
  const child = spawn(program, args, { ...surroundings, stdio: ['ignore', 'pipe', 'pipe'] })
  return letGo(child, program, [child.stdout, child.stderr])
}

/**
 * Starts a program of the agent, without arguments, whose input and output are one end of a socket; the caller uses the
 * other end. `priority`: the background priority, or the agent's own. Throws if it cannot be started.
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
  // Without free file descriptors, the error is an event and there are no streams.
  if (streams.includes(undefined)) {
    child.on('error', () => undefined)
    throw new Error(`cannot start ${program}: too many open files`)
  }
  if (child.pid !== undefined) lowerPriority(child.pid)
  child.unref()
  for (const stream of streams) (stream as Socket).unref()
  return child
}
