// Documents in components: read once, or followed while the page is visible.

import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, denied, read, readLines } from './api.ts'

/** Updates are paused by the user. Followed documents are not read while they are. */
export const paused = signal(false)

/** The tab is hidden. */
export const hidden = signal(document.hidden)
document.addEventListener('visibilitychange', () => {
  hidden.value = document.hidden
})

export interface Reading<T> {
  readonly state: 'loading' | 'live' | 'error'
  /** The last document, which stays while a reading fails. */
  readonly value: T | undefined
  /** Error message; '' if there is none. */
  readonly error: string
  /** 404: it does not exist. */
  readonly missing: boolean
}

const loading: Reading<never> = { state: 'loading', value: undefined, error: '', missing: false }

const firstWaitMs = 500
const longestWaitMs = 10_000

/**
 * Follows a document (`apiUrl(…)`; undefined: none), and reconnects after a loss. `line` makes the new value from the
 * previous one and a line. Nothing is read while the tab is hidden or the page is paused. A document without data for
 * `quietMs` counts as lost: behind a tunnel there is no other sign.
 */
export function useLive<Line, T = Line>(
  path: string | undefined,
  line: (before: T | undefined, line: Line) => T = (_, last) => last as unknown as T,
  quietMs = Number.POSITIVE_INFINITY,
): Reading<T> {
  const reading = useSignal<Reading<T>>(loading)
  const take = useRef(line)
  take.current = line
  const stopped = paused.value || hidden.value || denied.value !== ''
  const last = useRef('')
  useEffect(() => {
    if (path === undefined) return
    if (last.current !== path) reading.value = loading
    last.current = path
    if (stopped) return
    const controller = new AbortController()
    void follow(controller.signal)
    return () => controller.abort()

    async function follow(signal: AbortSignal): Promise<void> {
      let waitMs = firstWaitMs
      const url = `${path}${path!.includes('?') ? '&' : '?'}follow=1`
      while (!signal.aborted) {
        let value: T | undefined
        const quiet = new Quiet(quietMs)
        try {
          await readLines<Line>(url, AbortSignal.any([signal, quiet.signal]), each => {
            if (signal.aborted) return
            quiet.begin()
            value = take.current(value, each)
            waitMs = firstWaitMs
            reading.value = { state: 'live', value, error: '', missing: false }
          })
        } catch (error) {
          if (signal.aborted) return
          reading.value = failed(reading.value.value, error)
          if (denied.value !== '') return
        } finally {
          quiet.end()
        }
        await new Promise(resolve => setTimeout(resolve, waitMs))
        waitMs = Math.min(waitMs * 2, longestWaitMs)
      }
    }
  }, [path, stopped])
  return reading.value
}

/** Aborts after a period of silence. */
class Quiet {
  readonly #controller = new AbortController()
  readonly #ms: number
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(ms: number) {
    this.#ms = ms
    this.begin()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Starts the period. */
  begin(): void {
    this.end()
    if (Number.isFinite(this.#ms)) this.#timer = setTimeout(() => this.#controller.abort(), this.#ms)
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** Reads a document, again when its path or `again` changes, and retries until it arrives. */
export function useDocument<T>(path: string | undefined, again: unknown = 0): Reading<T> {
  const reading = useSignal<Reading<T>>(loading)
  const last = useRef('')
  const refused = denied.value !== ''
  useEffect(() => {
    if (path === undefined || refused) return
    const controller = new AbortController()
    void persist(path, controller.signal)
    return () => controller.abort()

    async function persist(asked: string, signal: AbortSignal): Promise<void> {
      for (let waitMs = firstWaitMs; !signal.aborted; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
        try {
          const value = await read<T>(asked, signal)
          if (signal.aborted) return
          last.current = asked
          reading.value = { state: 'live', value, error: '', missing: false }
          return
        } catch (error) {
          if (signal.aborted) return
          // The old value stays if it answers the same query.
          reading.value = failed(last.current === asked ? reading.value.value : undefined, error)
          if (denied.value !== '') return
        }
        await new Promise(resolve => setTimeout(resolve, waitMs))
      }
    }
  }, [path, again, refused])
  return reading.value
}

function failed<T>(value: T | undefined, error: unknown): Reading<T> {
  const missing = error instanceof ApiError && error.status === 404
  const words =
    error instanceof ApiError ? error.message : 'The agent does not answer; it may have stopped or restarted'
  return { state: 'error', value, error: words, missing }
}
