/** The deadline of one fetch, across all its steps. */
export class Deadline {
  readonly #timer: NodeJS.Timeout
  readonly #stop: AbortSignal | undefined
  readonly #stopped = (): void => this.#end('stopped')
  #ended: '' | 'timeout' | 'stopped' = ''
  /** Cancels the current step. */
  cancel: (() => void) | undefined

  constructor(timeoutMs: number, stop: AbortSignal | undefined) {
    this.#timer = setTimeout(() => this.#end('timeout'), timeoutMs).unref()
    this.#stop = stop
    stop?.addEventListener('abort', this.#stopped)
    if (stop?.aborted) this.#end('stopped')
  }

  /** '' while there is time. */
  get ended(): '' | 'timeout' | 'stopped' {
    return this.#ended
  }

  /** Removes the timer. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#stop?.removeEventListener('abort', this.#stopped)
    this.cancel = undefined
  }

  /**
   * Result of the promise; undefined if the deadline comes first. Then `cancel` is called, and `late` with a value that
   * still arrives.
   */
  wait<T>(promise: Promise<T>, cancel?: () => void, late?: (value: T) => void): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const ended = (): void => {
        cancel?.()
        resolve(undefined)
      }
      this.cancel = ended
      promise.then(value => {
        if (this.#ended === '') resolve(value)
        else late?.(value)
      }, reject)
      if (this.#ended !== '') ended()
    })
  }

  #end(why: 'timeout' | 'stopped'): void {
    if (this.#ended !== '') return
    this.#ended = why
    this.cancel?.()
  }
}
