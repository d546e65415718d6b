// Synchronous requests to svc-probe, one at a time, with a timeout.

import { readSync, writeSync } from 'node:fs'
import { retryInterrupted } from '../foundation/lib/retry-interrupted.ts'
import { type AnsweringChild, startAnswering } from './child.ts'
import type { ChannelHandle, Native } from './native.ts'

export interface HelperAnswer {
  /** 0: success. */
  readonly errno: number
  readonly payload: Buffer
}

/** The longest answer: command line and environment of a process. */
const mostAnswerBytes = 2 * 256 * 1024 + 64
const bufferBytes = mostAnswerBytes + 4_096

/** svc-probe, by our end of the channel. Every method throws after it has ended. */
export class HelperChannel {
  isOpen = true
  readonly #child: AnsweringChild
  readonly #native: Native
  readonly #channel: ChannelHandle
  readonly #fd: number
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #start = 0
  #end = 0

  constructor(program: string, native: Native, patienceMs: number) {
    this.#native = native
    this.#channel = native.channelOpen(patienceMs)
    const { near, far } = native.channelEnds(this.#channel)
    this.#fd = near
    try {
      this.#child = startAnswering(program, far, 'own')
    } catch (error) {
      native.channelClose(this.#channel)
      throw error
    }
    native.channelBelongs(this.#channel, this.#child.pid!)
    this.#child.on('exit', () => {
      this.isOpen = false
      native.channelBelongs(this.#channel, 0)
    })
  }

  close(): void {
    this.isOpen = false
    this.#child.kill('SIGKILL')
    this.#native.channelClose(this.#channel)
  }

  /** `text`: PATH in native/probe/probe.c. */
  ask(id: number, operation: string, limit: number, text: string): void {
    const request = `${id} ${operation} ${limit} ${Buffer.from(text).toString('hex')}\n`
    if (retryInterrupted(() => writeSync(this.#fd, request)) !== request.length)
      throw new Error('it does not read its input')
  }

  /**
   * Undefined if it does not arrive in time; valid until the next call. `other`: called for an answer to an earlier
   * request.
   */
  answer(
    id: number,
    mostMs: number,
    other: (id: number, answer: HelperAnswer) => void,
  ): HelperAnswer | undefined {
    const endMs = performance.now() + mostMs
    for (;;) {
      const head = this.#line(endMs)
      if (head === undefined) return undefined
      const [answered = 0, errno = 0, length = 0] = head.text.split(' ').map(Number)
      if (length > mostAnswerBytes) throw new Error('unexpected output')
      // The received part stays, and is read with the next request.
      if (!this.#fill(head.end + length, endMs)) return undefined
      const answer = { errno, payload: this.#buffer.subarray(head.end, head.end + length) }
      this.#start = head.end + length
      if (answered === id) return answer
      other(answered, answer)
    }
  }

  /** The line that begins here; `end`: offset after it. */
  #line(endMs: number): { readonly text: string; readonly end: number } | undefined {
    // Only between answers, so that no bytes in use move.
    this.#buffer.copyWithin(0, this.#start, this.#end)
    this.#end -= this.#start
    this.#start = 0
    for (let wanted = 1; ; wanted = this.#end + 1) {
      if (!this.#fill(wanted, endMs)) return undefined
      const newline = this.#buffer.subarray(0, Math.min(this.#end, 64)).indexOf(10)
      if (newline >= 0) return { text: this.#buffer.toString('latin1', 0, newline), end: newline + 1 }
      if (this.#end >= 64) throw new Error('unexpected output')
    }
  }

  /** True if this many bytes are available. */
  #fill(wanted: number, endMs: number): boolean {
    while (this.#end < wanted) {
      if (performance.now() > endMs) return false
      let got = 0
      try {
        got = readSync(this.#fd, this.#buffer, this.#end, this.#buffer.length - this.#end, null)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EAGAIN') return false
        // A signal: many of them would restart the kernel's timeout forever.
        if (code === 'EINTR') continue
        throw error
      }
      if (got === 0) throw new Error('it ended')
      this.#end += got
    }
    return true
  }
}
