import { errorText } from '../foundation/lib/logger.ts'
import { LoadError } from './bpf-object.ts'
import { btf, firstMissing, loadPrograms } from './needs.ts'

/** Why programs do not run, and the hint; '' if unknown. */
export interface NotLoaded {
  readonly reason: string
  readonly hint: string
}

/** If this process may load nothing, or the kernel has no BTF, that is the reason, whichever object failed. */
export function whyNotLoaded(error: unknown): NotLoaded {
  const missing = error instanceof LoadError ? firstMissing([loadPrograms, btf]) : undefined
  return missing === undefined
    ? { reason: errorText(error), hint: '' }
    : { reason: missing.detail, hint: missing.hint }
}
