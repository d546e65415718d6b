import type { ExitCode } from '../../foundation/lib/start-error.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'

/** Ends the process at once. `process.exit` would wait for the thread pool, and so for a disk that hangs. */
export function endProcess(code: ExitCode): never {
  const native = loadNative()
  if (!(native instanceof Unsupported)) native.endProcess(code)
  process.exit(code)
}
