/** Why a load failed: which program or map, and the line of the log that tells. */
export interface Refusal {
  readonly program: string | undefined
  readonly map: string | undefined
  readonly reason: string
  /** The kernel does not know what the object is made of, as older ones do not. */
  readonly unknown: boolean
}

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
export function reportRefusal(object: string, refusal: Refusal, log: string): void {
  for (const listener of listeners) listener(object, refusal, log)
}
