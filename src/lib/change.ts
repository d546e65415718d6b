/** A change that is ready and cannot fail any more. Exactly one of the two is called. */
export interface Change {
  commit(): void
  abort(): void
}
