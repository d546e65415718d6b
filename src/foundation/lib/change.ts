/** A prepared change that can no longer fail. Exactly one of the two is called. */
export interface Change {
  commit(): void
  abort(): void
}

/** A change with nothing to undo on abort. */
export function change(commit: () => void): Change {
  return { commit, abort: () => undefined }
}
