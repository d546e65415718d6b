import { errorText } from '../foundation/lib/logger.ts'
import { LoadError } from './bpf-object.ts'
import { btf, firstMissing, loadPrograms } from './needs.ts'

/** Why programs do not run, and the hint; '' where it is not known. */
export interface NotLoaded {
  readonly reason: string
  readonly hint: string
}

/** Where this process may load nothing, or the kernel has no types, that is the reason, and not the object that met it. */
export function whyNotLoaded(error: unknown): NotLoaded {
  const missing = error instanceof LoadError ? firstMissing([loadPrograms, btf]) : undefined
  return missing === undefined
    ? { reason: errorText(error), hint: '' }
    : { reason: missing.detail, hint: missing.hint }
}
