import { Program, until } from './program.ts'

/** A datagram of sd_notify(3), and who sent it. */
export interface Notice {
  readonly pid: number
  readonly lines: readonly string[]
}

/** The socket of a service manager, in a process of its own. `address` is what NOTIFY_SOCKET says. */
export class NotifySocket {
  readonly notices: Notice[] = []
  readonly #program: Program<object>

  private constructor(program: Program<object>) {
    this.#program = program
  }

  static async open(address: string): Promise<NotifySocket> {
    return new NotifySocket(await Program.start('notify-socket.py', { address }))
  }

  /** Every line of all that was told so far. */
  get lines(): readonly string[] {
    return this.notices.flatMap(({ lines }) => lines)
  }

  async take(): Promise<readonly string[]> {
    return this.#ask('take')
  }

  /** Leaves what comes unread. */
  async hold(): Promise<void> {
    await this.#ask('hold')
  }

  async go(): Promise<void> {
    await this.#ask('go')
  }

  /** Resolves when a line was told that matches, which may have been before. */
  async told(line: RegExp, timeoutMs = 30_000): Promise<string> {
    let found: string | undefined
    await until(
      () => `${line} is told: ${this.lines.join(' | ')}`,
      timeoutMs,
      async () => {
        found = (await this.take()).find(each => line.test(each))
        return found !== undefined
      },
    )
    return found!
  }

  forget(): void {
    this.notices.length = 0
  }

  async close(): Promise<void> {
    await this.#program.close()
  }

  async #ask(command: string): Promise<readonly string[]> {
    this.notices.push(...(await this.#program.ask<Notice[]>(command)))
    return this.lines
  }
}
