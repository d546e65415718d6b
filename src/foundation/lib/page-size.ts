import { readFileSync } from 'node:fs'

/** AT_PAGESZ (getauxval(3)). */
const pageSizeEntry = 6n
const usual = 4096

/** Memory page size in bytes, from the kernel's auxiliary vector; 4096 if it cannot be read. */
export function pageSizeBytes(): number {
  try {
    const vector = readFileSync('/proc/self/auxv')
    for (let at = 0; at + 16 <= vector.length; at += 16)
      if (vector.readBigUInt64LE(at) === pageSizeEntry) return Number(vector.readBigUInt64LE(at + 8))
    return usual
  } catch {
    return usual // /proc hides it: correct on all machines except some ARM and POWER ones
  }
}
