import type { Refusal } from './bpf-object.ts'

/** Told of an object that the kernel refused, wholly or in one of its programs, with all that libbpf and the verifier said. */
export type RefusalListener = (object: string, refusal: Refusal, log: string) => void

const listeners = new Set<RefusalListener>()

/** Tells of every refusal from now on, until the function that it returns is called. */
export function watchRefusals(listener: RefusalListener): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** Keeps what was said for whoever wants it: an object is loaded by many, and most want only the finding. */
export function tellRefusal(object: string, refusal: Refusal, log: string): void {
  for (const listener of listeners) listener(object, refusal, log)
}
