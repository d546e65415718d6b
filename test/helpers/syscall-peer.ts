import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A Python program that does what it is told, in a process of its own. */
export class SyscallPeer {
  readonly pid: number
  readonly #child: ChildProcess
  readonly #answers: AsyncIterator<string>

  private constructor(child: ChildProcess, answers: AsyncIterator<string>, pid: number) {
    this.#child = child
    this.#answers = answers
    this.pid = pid
  }

  static async start(): Promise<SyscallPeer> {
    const script = join(import.meta.dirname, 'syscall-peer.py')
    const child = spawn('python3', [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    const answers = createInterface(child.stdout!)[Symbol.asyncIterator]()
    const { value = '' } = await answers.next()
    return new SyscallPeer(child, answers, JSON.parse(value) as number)
  }

  /** Runs Python statements; resolves with what they assign to `result`. */
  async run<T>(code: string): Promise<T> {
    this.#child.stdin!.write(`${JSON.stringify(code.replace(/^ {4}/gm, ''))}\n`)
    const { value, done } = await this.#answers.next()
    if (done) throw new Error('the Python program has ended')
    return JSON.parse(value) as T
  }

  /** Ends it at once, and waits until it is gone. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = new Promise(resolve => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    await gone
  }
}
