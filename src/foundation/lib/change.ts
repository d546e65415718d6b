/** A change that is ready and cannot fail any more. Exactly one of the two is called. */
export interface Change {
  commit(): void
  abort(): void
}

/** A change that takes nothing with it where it is not made. */
export function change(commit: () => void): Change {
  return { commit, abort: () => undefined }
}
