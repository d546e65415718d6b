// How much memory this process may take, and what its caches make of it.

import { totalmem } from 'node:os'

/** Where there is as much as this, caches have the size that is configured. */
const ampleBytes = 512 * 1024 * 1024

/** Bytes that the control group, or else the machine, lets this process have (memory.max, memory.limit_in_bytes). */
export function memoryLimit(): number {
  const limit = process.constrainedMemory?.() ?? 0
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** What a cache of `bytes` may have below a limit: less in proportion where memory is scarce, never nothing. */
export function fitted(bytes: number, limit = memoryLimit()): number {
  return limit >= ampleBytes ? bytes : Math.max(1, Math.floor(bytes * (limit / ampleBytes)))
}
