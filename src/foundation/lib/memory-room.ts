// How much memory this process may take, and what its parts get of it.

import { totalmem } from 'node:os'
import type { MemoryBounds } from './memory-governor.ts'

const Mi = 1024 * 1024

/** Where there is as much as this, caches have the size that is configured. */
const ampleBytes = 512 * Mi
const autoPart = 0.4
const leastAuto = 160 * Mi
const mostAuto = 512 * Mi

/** Bytes that the control group, or else the machine, lets this process have (memory.max, memory.limit_in_bytes). */
export function memoryLimit(): number {
  const limit = process.constrainedMemory?.() ?? 0
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** What a cache of `bytes` may have below a limit: less in proportion where memory is scarce, never nothing. */
export function fitted(bytes: number, limit = memoryLimit()): number {
  return limit >= ampleBytes ? bytes : Math.max(1, Math.floor(bytes * (limit / ampleBytes)))
}

/** Bytes of the whole agent by `limits.memory`. */
export function agentBytes(setting: number | 'auto', available = memoryLimit()): number {
  if (setting !== 'auto') return setting
  return Math.floor(Math.min(mostAuto, Math.max(leastAuto, available * autoPart)))
}

/**
 * `--max-old-space-size` for an agent of so many bytes, in MiB: the last resort, half of the whole. The governor acts
 * at a fifth.
 */
export function heapLimitMiB(bytes: number): number {
  return Math.floor(bytes / 2 / Mi)
}

/** What the governor holds an agent of so many bytes to. */
export function memoryBounds(bytes: number): MemoryBounds {
  return {
    tablesBytes: Math.floor(bytes / 10),
    heapBytes: Math.max(bytes / 5, Math.min(80 * Mi, bytes * 0.4)),
    processBytes: bytes,
  }
}
