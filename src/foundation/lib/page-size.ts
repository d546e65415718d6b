import { readFileSync } from 'node:fs'

/** AT_PAGESZ (getauxval(3)). */
const pageSizeEntry = 6n
const usual = 4096

/** Bytes of a page of memory, from what the kernel told this process at its start; 4096 where that cannot be read. */
export function pageSizeBytes(): number {
  try {
    const vector = readFileSync('/proc/self/auxv')
    for (let at = 0; at + 16 <= vector.length; at += 16)
      if (vector.readBigUInt64LE(at) === pageSizeEntry) return Number(vector.readBigUInt64LE(at + 8))
    return usual
  } catch {
    return usual // a /proc that hides it: right on all machines but some of ARM and POWER
  }
}
