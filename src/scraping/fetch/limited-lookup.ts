import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

type Answer = Parameters<LookupFunction>[2]

interface Asked {
  readonly ask: () => void
  readonly waiting: Answer[]
}

/**
 * The system's way from names to addresses, for at most so many names at a time. Each occupies a thread of the pool for
 * as long as its server is silent, and files and compression need those, too.
 */
export function limitedLookup(
  atOnce: number,
  resolve: LookupFunction = lookup as LookupFunction,
): LookupFunction {
  const asked = new Map<string, Asked>()
  const queue: Asked[] = []
  let running = 0
  const next = (): void => {
    while (running < atOnce && queue.length > 0) {
      running++
      queue.shift()!.ask()
    }
  }
  return (host, options, callback) => {
    const key = `${host} ${options.family ?? 0} ${options.hints ?? 0} ${options.all ?? false}`
    const known = asked.get(key)
    if (known !== undefined) {
      known.waiting.push(callback)
      return
    }
    const waiting = [callback]
    const ask = (): void =>
      resolve(host, options, (...answer) => {
        running--
        asked.delete(key)
        for (const tell of waiting) tell(...answer)
        next()
      })
    const entry = { ask, waiting }
    asked.set(key, entry)
    queue.push(entry)
    next()
  }
}

/** Half of the pool, for all targets. */
export const targetLookup = limitedLookup(2)
