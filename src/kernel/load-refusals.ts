/** Why a load failed: the program or map, and the line of the log with the reason. */
export interface Refusal {
  readonly program: string | undefined
  readonly map: string | undefined
  readonly reason: string
  /** The kernel lacks a feature of the object, as older ones do. */
  readonly unknown: boolean
}

/** Called when the kernel rejects an object or one of its programs, with all output of libbpf and the verifier. */
export type RefusalListener = (object: string, refusal: Refusal, log: string) => void

const listeners = new Set<RefusalListener>()

/** Reports every rejection until the returned function is called. */
export function watchRefusals(listener: RefusalListener): () => void {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** Passes the full output to listeners: objects are loaded in many places, most of which need only the finding. */
export function reportRefusal(object: string, refusal: Refusal, log: string): void {
  for (const listener of listeners) listener(object, refusal, log)
}
