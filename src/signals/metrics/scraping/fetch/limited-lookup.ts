import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'

type Answer = Parameters<LookupFunction>[2]

interface Asked {
  readonly ask: () => void
  readonly waiting: Answer[]
}

/** A responding server answers sooner. */
const slowMs = 1_000
const rememberedNames = 1_000

/**
 * The system's name resolution, for at most `atOnce` names at a time. Each one blocks a thread of the pool while its
 * server is silent, and files and compression need threads too. Names whose server was silent last time leave one slot
 * to the others.
 */
export function limitedLookup(
  atOnce: number,
  resolve: LookupFunction = lookup as LookupFunction,
): LookupFunction {
  const asked = new Map<string, Asked>()
  const quick: Asked[] = []
  const slow: Asked[] = []
  const slowNames = small(new BoundedMap<string, true>(rememberedNames))
  let running = 0
  let slowRunning = 0
  const next = (): void => {
    while (running < atOnce) {
      const mayBeSlow = slowRunning < Math.max(1, atOnce - 1)
      const entry = quick.shift() ?? (mayBeSlow ? slow.shift() : undefined)
      if (entry === undefined) return
      running++
      entry.ask()
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
    const isSlow = slowNames.get(host) !== undefined
    const ask = (): void => {
      if (isSlow) slowRunning++
      const startedAt = performance.now()
      resolve(host, options, (...answer) => {
        running--
        if (isSlow) slowRunning--
        if (performance.now() - startedAt >= slowMs) slowNames.set(host, true)
        else slowNames.delete(host)
        asked.delete(key)
        for (const respond of waiting) respond(...answer)
        next()
      })
    }
    const entry = { ask, waiting }
    asked.set(key, entry)
    ;(isSlow ? slow : quick).push(entry)
    next()
  }
}

/** Half of the pool, for all targets. */
export const targetLookup = limitedLookup(2)
