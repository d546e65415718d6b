import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './program.ts'

/** A terminal with one program in it, by a tmux server of its own. */
export class Tmux {
  readonly #directory = mkdtempSync(join(tmpdir(), 'svc-tmux-'))

  /** `sh` is what the terminal's shell runs. When it has ended, the screen stays as it is. */
  constructor(sh: string, { columns = 80, rows = 24, env = {} as Record<string, string> } = {}) {
    const variables = Object.entries({ LC_ALL: 'C.UTF-8', NO_COLOR: '', ...env })
    this.#run(
      ...['-f', '/dev/null', 'new-session', '-d', '-s', 'test', '-x', String(columns), '-y', String(rows)],
      ...variables.flatMap(([name, value]) => ['-e', `${name}=${value}`]),
      `${sh}; sleep 1000`,
    )
  }

  /** What is on the screen, with `escapes` its colours too. */
  screen(escapes = false): string {
    return this.#run('capture-pane', '-p', ...(escapes ? ['-e'] : []), '-t', 'test')
  }

  lines(): string[] {
    return this.screen().split('\n')
  }

  /** Keys as tmux names them: `Enter`, `Up`, `q`. */
  press(...keys: readonly string[]): void {
    this.#run('send-keys', '-t', 'test', ...keys)
  }

  resize(columns: number, rows: number): void {
    this.#run('resize-window', '-t', 'test', '-x', String(columns), '-y', String(rows))
  }

  /** Whether a full-screen program has the terminal. */
  get isAlternate(): boolean {
    return this.#run('display-message', '-p', '-t', 'test', '#{alternate_on}').trim() === '1'
  }

  get isCursorShown(): boolean {
    return this.#run('display-message', '-p', '-t', 'test', '#{cursor_flag}').trim() === '1'
  }

  /** The process that the terminal's shell runs now; undefined: none. */
  get program(): number | undefined {
    const shell = this.#run('display-message', '-p', '-t', 'test', '#{pane_pid}').trim()
    const [child] = readFileSync(`/proc/${shell}/task/${shell}/children`, 'latin1').split(' ')
    return child ? Number(child) : undefined
  }

  /** Waits until the screen is as wanted, and stays so for two looks: a frame comes line by line. */
  async shows(wanted: RegExp | ((screen: string) => boolean), timeoutMs = 20_000): Promise<string> {
    let last = ''
    await until(
      () => `the screen shows ${wanted}:\n${last}`,
      timeoutMs,
      () => {
        const before = last
        last = this.screen()
        if (last !== before) return false
        return typeof wanted === 'function' ? wanted(last) : wanted.test(last)
      },
    )
    return last
  }

  /** Ends the server and what runs in it. */
  async end(): Promise<void> {
    const ending = spawn('tmux', [...this.#server(), 'kill-server'], { stdio: 'ignore' })
    await new Promise(resolve => ending.once('close', resolve))
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #server(): string[] {
    return ['-S', join(this.#directory, 'socket')]
  }

  #run(...args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync('tmux', [...this.#server(), ...args], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`)
    return stdout
  }
}
