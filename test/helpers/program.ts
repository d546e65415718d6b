import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const fixtures = join(import.meta.dirname, '..', 'fixtures', 'web')

/** The distribution's Python, rather than whatever wrapper the path has: wrappers start further processes. */
const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'

/**
 * The environment of programs whose code is looked at, or whose files have a bound: without the counts of --coverage,
 * which change code and write files.
 */
export function uncounted(): NodeJS.ProcessEnv {
  return { ...process.env, NODE_V8_COVERAGE: undefined }
}

/**
 * A program of its own that answers each line on its standard input by one line of JSON, and ends with its input. Its
 * first line, unasked, says that it is ready.
 */
export class Program<Ready = { port: number }> {
  readonly pid: number
  readonly ready: Ready
  readonly #child: ChildProcess
  readonly #replies: AsyncIterator<string>
  readonly #ended: Promise<void>

  private constructor(
    child: ChildProcess,
    replies: AsyncIterator<string>,
    ended: Promise<void>,
    ready: Ready,
  ) {
    this.pid = child.pid!
    this.ready = ready
    this.#child = child
    this.#replies = replies
    this.#ended = ended
  }

  /** Starts a script of test/fixtures/web, by Node.js or by Python as its name says. */
  static async start<Ready = { port: number }>(
    script: string,
    options: unknown = {},
    env: Readonly<Record<string, string>> = {},
    flags: readonly string[] = [],
  ): Promise<Program<Ready>> {
    const command = script.endsWith('.py') ? python : process.execPath
    const settings: SpawnOptions = {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env, NODE_OPTIONS: '' },
    }
    const child = spawn(command, [...flags, join(fixtures, script), JSON.stringify(options)], settings)
    const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
    const replies = createInterface(child.stdout!)[Symbol.asyncIterator]()
    const { value, done } = await replies.next()
    if (done) throw new Error(`${script} ended before it was ready`)
    return new Program(child, replies, ended, JSON.parse(value) as Ready)
  }

  async ask<Reply>(line: string): Promise<Reply> {
    this.#child.stdin!.write(`${line}\n`)
    const { value, done } = await this.#replies.next()
    if (done) throw new Error(`the program with pid ${this.pid} ended before it answered "${line}"`)
    return JSON.parse(value) as Reply
  }

  async close(): Promise<void> {
    this.#child.stdin!.end()
    await this.#ended
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }
}

/**
 * Those that the runner of the tests gives to this file alone, below the ports that the kernel gives to whoever asks for
 * any, so that nobody gets one until its user has it.
 */
const [firstPort, lastPort] = (process.env.TEST_PORTS ?? '28100-32699').split('-').map(Number) as [
  number,
  number,
]
const portCount = lastPort - firstPort + 1
let portsGiven = Math.floor(Math.random() * portCount)

/** A port of 127.0.0.1 where nobody listens, and no other one of this process was given. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + (portsGiven++ % portCount)
    const server = createServer()
    const free = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (free) return port
  }
}

/** Resolves when somebody listens there. */
export async function listening(port: number, timeoutMs = 60_000): Promise<void> {
  await until(`somebody listens at port ${port}`, timeoutMs, async () => {
    const socket = connect(port, '127.0.0.1')
    return new Promise<boolean>(resolve => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    }).finally(() => socket.destroy())
  })
}

/** Resolves when a child that runs no Node.js has its own arguments and environment, and not those of this process. */
export async function runsItsProgram(pid: number): Promise<void> {
  await until(
    `process ${pid} runs its program`,
    60_000,
    () =>
      readlinkSync(`/proc/${pid}/exe`) !== process.execPath &&
      readFileSync(`/proc/${pid}/environ`).length > 0,
  )
}

/** What can say why something does not come: asked where somebody waited in vain. */
export const witnesses = new Set<() => Promise<string>>()

/** Asks until the answer is yes, for a fifth of the time where asking is much work. `what` names it in the error. */
export async function until(
  what: string | (() => string),
  timeoutMs: number,
  test: () => boolean | Promise<boolean>,
): Promise<void> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const asked = performance.now()
    if (await test()) return
    if (performance.now() > end) {
      const said = await Promise.all(Array.from(witnesses, witness => witness().catch(String)))
      const wanted = typeof what === 'string' ? what : what()
      throw new Error([`waited ${timeoutMs} ms in vain until ${wanted}`, ...said].join('\n'))
    }
    await pause(Math.max(25, Math.min(1000, 4 * (performance.now() - asked))))
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
