import { fitted } from '../../foundation/lib/terminal-text.ts'
import { say, terminal } from './terminal.ts'

/** From here on people wonder. */
const patienceMs = 1000

/**
 * Says on a terminal what takes long, on one line of standard error that is written anew each second and goes away.
 * `tell` gets the seconds that have passed. Returns what ends it.
 */
export function startProgress(tell: (seconds: number) => string, afterMs = patienceMs): () => void {
  const { interactive } = terminal()
  if (!interactive || process.env.TERM === 'dumb') return () => undefined
  const began = performance.now()
  let isShown = false
  const show = () => {
    isShown = true
    const text = tell(Math.floor((performance.now() - began) / 1000))
    // A line that wraps could not be taken back.
    say(`\r\x1b[K${fitted(text, (process.stderr.columns || 80) - 1)}`)
  }
  if (afterMs === 0) show()
  const timer = setInterval(show, patienceMs)
  return () => {
    clearInterval(timer)
    if (isShown) say('\r\x1b[K')
  }
}

/** Waits for something and says meanwhile that it goes on. */
export async function withProgress<T>(what: string, work: Promise<T>): Promise<T> {
  const done = startProgress(seconds => `${what}, ${seconds} s`)
  try {
    return await work
  } finally {
    done()
  }
}
