import { loadNative, Unsupported } from './native.ts'

/** Collects garbage, thoroughly or not, and returns memory to the system. Takes 10 to 100 ms. */
export function giveBackMemory(thoroughly: boolean): void {
  // A runtime that was not started by bin/svc has no gc. The thorough one collects several times.
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: thoroughly ? 'last-resort' : 'regular' })
  const native = loadNative()
  if (!(native instanceof Unsupported)) native.giveBackMemory()
}
