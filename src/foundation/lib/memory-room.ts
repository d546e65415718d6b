// How much memory this process may use, and the shares of its parts.

import { totalmem } from 'node:os'
import type { MemoryBounds } from './memory-governor.ts'

const Mi = 1024 * 1024

/** With at least this much, caches have their configured size. */
const ampleBytes = 512 * Mi
const autoPart = 0.4
const leastAuto = 160 * Mi
const mostAuto = 512 * Mi

/** Bytes that the cgroup, or otherwise the machine, allows this process (memory.max, memory.limit_in_bytes). */
export function memoryLimit(): number {
  const limit = process.constrainedMemory?.() ?? 0
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** The size of a cache below a limit: reduced in proportion if memory is scarce, at least 1. */
export function fitted(bytes: number, limit = memoryLimit()): number {
  return limit >= ampleBytes ? bytes : Math.max(1, Math.floor(bytes * (limit / ampleBytes)))
}

/** Bytes of the whole agent according to `limits.memory`. */
export function agentBytes(setting: number | 'auto', available = memoryLimit()): number {
  if (setting !== 'auto') return setting
  return Math.floor(Math.min(mostAuto, Math.max(leastAuto, available * autoPart)))
}

/**
 * `--max-old-space-size` for an agent of this many bytes, in MiB: the last resort, half of the total. The governor acts
 * at a fifth.
 */
export function heapLimitMiB(bytes: number): number {
  return Math.floor(bytes / 2 / Mi)
}

/** The governor's limits for an agent of this many bytes. */
export function memoryBounds(bytes: number): MemoryBounds {
  return {
    tablesBytes: Math.floor(bytes / 10),
    heapBytes: Math.max(bytes / 5, Math.min(80 * Mi, bytes * 0.4)),
    processBytes: bytes,
  }
}
