/** A profile of this process, as a file. */
export interface ProfileFile {
  readonly contentType: string
  readonly fileName: string
  readonly body: Buffer
}

/** What of this process can be profiled. */
export interface ProfileKind {
  readonly name: string
  readonly summary: string
  /** Default and bounds of `seconds`; left out: of a moment. */
  readonly seconds?: { readonly default: number; readonly min: number; readonly max: number }
}
