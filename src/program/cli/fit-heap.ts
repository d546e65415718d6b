import { heapLimitMiB } from '../../foundation/lib/memory-room.ts'

const flag = /^--max[-_]old[-_]space[-_]size=(\d+)$/
/** Relative difference below which the process is not started again. */
const tolerance = 0.1

/**
 * Arguments of the runtime with the heap limit for an agent of `bytes`; undefined if it is set already, or the runtime
 * was started without `bin/svc`, with flags of its own.
 */
export function fittedArguments(given: readonly string[], bytes: number): string[] | undefined {
  const at = given.findIndex(argument => flag.test(argument))
  const current = Number(flag.exec(given[at] ?? '')?.[1])
  const wanted = heapLimitMiB(bytes)
  if (!(current > 0) || Math.abs(current - wanted) <= wanted * tolerance) return undefined
  return given.with(at, `--max-old-space-size=${wanted}`)
}

/**
 * Executes this program again in its process (execve(2): same PID, same input and output) if V8's heap limit does not
 * match the memory limit of svc: V8 reads it once, before any configuration can be read. Runtimes that cannot (before
 * Node 22.15) keep the limit of `bin/svc`.
 */
export function fitHeap(bytes: number): void {
  const fitted = fittedArguments(process.execArgv, bytes)
  if (fitted === undefined || process.execve === undefined) return
  process.execve(process.execPath, [process.execPath, ...fitted, ...process.argv.slice(1)], process.env)
}
