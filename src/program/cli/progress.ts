import { fitted } from '../../foundation/lib/terminal-text.ts'
import { say, terminal } from './terminal.ts'

/** Delay before showing progress. */
const patienceMs = 1000

/**
 * Shows progress of slow work on a terminal, on one line of standard error that is rewritten each second and finally
 * erased. `text` gets the elapsed seconds. Returns a function that ends it.
 */
export function startProgress(text: (seconds: number) => string, afterMs = patienceMs): () => void {
  const { interactive } = terminal()
  if (!interactive || process.env.TERM === 'dumb') return () => undefined
  const began = performance.now()
  let isShown = false
  const show = () => {
    isShown = true
    const line = text(Math.floor((performance.now() - began) / 1000))
    // A wrapped line could not be erased.
    say(`\r\x1b[K${fitted(line, (process.stderr.columns || 80) - 1)}`)
  }
  if (afterMs === 0) show()
  const timer = setInterval(show, patienceMs)
  return () => {
    clearInterval(timer)
    if (isShown) say('\r\x1b[K')
  }
}

/** Awaits something and shows progress until then. */
export async function withProgress<T>(what: string, work: Promise<T>): Promise<T> {
  const done = startProgress(seconds => `${what}, ${seconds} s`)
  try {
    return await work
  } finally {
    done()
  }
}
