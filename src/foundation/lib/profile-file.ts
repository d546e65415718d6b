/** A profile of this process, as a file. */
export interface ProfileFile {
  readonly contentType: string
  readonly fileName: string
  readonly body: Buffer
}

/** A kind of profile of this process. */
export interface ProfileKind {
  readonly name: string
  readonly summary: string
  /** Default and bounds of `seconds`; undefined: a snapshot. */
  readonly seconds?: { readonly default: number; readonly min: number; readonly max: number }
}
