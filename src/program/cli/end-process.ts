import type { ExitCode } from '../../foundation/lib/start-error.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'

/**
 * Ends the process. `process.exit` would wait for the thread pool, and with it for a disk that hangs, for as long as
 * that does.
 */
export function endProcess(code: ExitCode): never {
  const native = loadNative()
  if (!(native instanceof Unsupported)) native.endProcess(code)
  process.exit(code)
}
