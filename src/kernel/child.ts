import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

/** A program that runs, with its standard input and output. */
export type Child = ChildProcessByStdio<Writable, Readable, null>

/**
 * Starts a program of the agent's own: without a shell, arguments, or any of the agent's environment, and connected
 * by nothing but its standard input and output. Keeps no agent from ending. A failure to start is thrown, or comes as an
 * `error` event.
 */
export function startChild(program: string): Child {
  const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'ignore'], env: {}, cwd: '/' })
  // Where there are no more file descriptors, the error comes by an event and there are no streams.
  if (child.stdin === undefined) {
    child.on('error', () => undefined)
    throw new Error(`cannot start ${program}: too many open files`)
  }
  child.unref()
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as Socket).unref()
  return child
}
