import { heapLimitMiB } from '../../foundation/lib/memory-room.ts'

const flag = /^--max[-_]old[-_]space[-_]size=(\d+)$/
/** Nearer than this, the process is not started again for it. */
const tolerance = 0.1

/**
 * Arguments of the runtime with the heap limit that fits an agent of `bytes`, or undefined where it has that already,
 * or was started without `bin/svc`, by somebody who chose the flags.
 */
export function fittedArguments(given: readonly string[], bytes: number): string[] | undefined {
  const at = given.findIndex(argument => flag.test(argument))
  const current = Number(flag.exec(given[at] ?? '')?.[1])
  const wanted = heapLimitMiB(bytes)
  if (!(current > 0) || Math.abs(current - wanted) <= wanted * tolerance) return undefined
  return given.with(at, `--max-old-space-size=${wanted}`)
}

/**
 * Starts this program again in its process (execve(2): same pid, same descriptors for input and output) where V8's
 * limit does not fit the memory that svc may take: V8 reads it once, before any configuration can be read. Runtimes
 * that cannot (before Node 22.15) keep what `bin/svc` gave.
 */
export function fitHeap(bytes: number): void {
  const fitted = fittedArguments(process.execArgv, bytes)
  if (fitted === undefined || process.execve === undefined) return
  process.execve(process.execPath, [process.execPath, ...fitted, ...process.argv.slice(1)], process.env)
}
