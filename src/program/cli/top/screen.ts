// Full-screen mode of the terminal: alternate screen, raw keys, and restoring in every case.

import type { ReadStream } from 'node:tty'
import { keysOf } from './keys.ts'

/** xterm: alternate screen, no cursor, no wrapping of long lines. */
const enterCodes = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const leaveCodes = '\x1b[?7h\x1b[?25h\x1b[?1049l'
/** Shows a frame as a whole (synchronized output); ignored by terminals without it. */
const beginFrame = '\x1b[?2026h\x1b[H'
const endFrame = '\x1b[?2026l'
/** The rest of a split sequence arrives within this time; a user's next key does not. */
const sequenceMs = 50

export interface ScreenOptions {
  onKey(key: string): void
  /** The size has changed, or the program continues after a stop. */
  onResize(): void
}

export class Screen {
  readonly #options: ScreenOptions
  #isIn = false
  #held = ''
  #heldTimer: NodeJS.Timeout | undefined
  readonly #restore = () => this.#leave()
  readonly #typed = (chunk: Buffer | string) => this.#read(String(chunk))
  readonly #resized = () => this.#options.onResize()
  readonly #stopped = () => this.suspend()
  readonly #goesOn = () => {
    this.#enter()
    this.#options.onResize()
  }

  constructor(options: ScreenOptions) {
    this.#options = options
  }

  open(): void {
    process.on('exit', this.#restore)
    process.on('SIGTSTP', this.#stopped)
    process.on('SIGCONT', this.#goesOn)
    process.stdout.on('resize', this.#resized)
    process.stdin.on('data', this.#typed)
    // If the terminal goes away, SIGHUP ends the program.
    process.stdin.on('error', () => undefined)
    this.#enter()
  }

  close(): void {
    clearTimeout(this.#heldTimer)
    process.off('exit', this.#restore)
    process.off('SIGTSTP', this.#stopped)
    process.off('SIGCONT', this.#goesOn)
    process.stdout.off('resize', this.#resized)
    process.stdin.off('data', this.#typed)
    this.#leave()
  }

  /**
   * Draws a frame from the top: as many lines as the screen, all of full width. Overwrites in place, without flicker.
   */
  paint(lines: readonly string[]): void {
    if (!this.#isIn) return
    process.stdout.write(`${beginFrame}${lines.join('\r\n')}${endFrame}`)
  }

  /** Restores the terminal and stops until it is continued (`fg`). */
  suspend(): void {
    this.#leave()
    process.kill(process.pid, 'SIGSTOP')
  }

  #enter(): void {
    if (this.#isIn) return
    this.#isIn = true
    const input = process.stdin as ReadStream
    if (input.isTTY) input.setRawMode(true)
    input.resume()
    process.stdout.write(enterCodes)
  }

  #leave(): void {
    if (!this.#isIn) return
    this.#isIn = false
    process.stdout.write(leaveCodes)
    const input = process.stdin as ReadStream
    if (input.isTTY) input.setRawMode(false)
    input.pause()
  }

  #read(text: string): void {
    clearTimeout(this.#heldTimer)
    const all = this.#held + text
    const tail = /\x1b(?:\[[\x30-\x3f]*|O)?$/.exec(all)
    this.#held = tail === null ? '' : tail[0]
    for (const key of keysOf(all.slice(0, all.length - this.#held.length))) this.#options.onKey(key)
    if (this.#held === '') return
    this.#heldTimer = setTimeout(() => {
      const rest = this.#held
      this.#held = ''
      for (const key of keysOf(rest)) this.#options.onKey(key)
    }, sequenceMs)
  }
}
