import { type ChildProcess, spawn } from 'node:child_process'
import { call } from './http.ts'
import { freePort, until } from './program.ts'
import { svcProgram } from './program-under-test.ts'

/** A program that serves a metrics page and takes the flags of the replaced exporter: that one, or ours. */
export class ExporterProcess {
  readonly pid: number
  readonly port: number
  readonly #child: ChildProcess
  readonly #said: string[] = []

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.pid = child.pid!
    this.port = port
    child.stderr!.setEncoding('utf8').on('data', text => this.#said.push(text))
  }

  /** Starts a program on a port of loopback and waits until it answers. */
  static async start(
    command: string,
    args: readonly string[],
    options: { cwd?: string; ready?: boolean } = {},
  ): Promise<ExporterProcess> {
    const port = await freePort()
    const child = spawn(command, [...args, `--web.listen-address=127.0.0.1:${port}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    })
    const started = new ExporterProcess(child, port)
    try {
      if (options.ready ?? true)
        await until(
          () => `the exporter answers:\n${started.said}`,
          60_000,
          async () => (await call(port, '/').catch(() => undefined))?.status === 200,
        )
    } catch (error) {
      await started.stop()
      throw error
    }
    return started
  }

  /** Starts `svc node-exporter`. */
  static own(
    args: readonly string[] = [],
    options: { cwd?: string; ready?: boolean } = {},
  ): Promise<ExporterProcess> {
    return ExporterProcess.start(process.execPath, [svcProgram, 'node-exporter', ...args], options)
  }

  /** What it wrote to standard error. */
  get said(): string {
    return this.#said.join('')
  }

  async page(path = '/metrics'): Promise<string> {
    return (await call(this.port, path)).body.toString()
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = new Promise(resolve => this.#child.once('exit', resolve))
    this.#child.kill()
    await gone
  }
}
