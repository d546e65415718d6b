/** The collected content of a part. */
export interface Collected {
  readonly body: Buffer | string
  /** More content existed. */
  readonly cut: boolean
}

/** One file of the bundle, or the reason why it is missing. */
export interface Part {
  /** Its path in the bundle. */
  readonly name: string
  /** Description: one sentence without its full stop. */
  readonly what: string
  /** Origin: a URL's path, a file, a command. */
  readonly source: string
  readonly form: 'json' | 'lines' | 'text' | 'gzip'
  /** Size limit in the bundle. */
  readonly mostBytes: number
  /** Collects slightly more than `mostBytes`, if available. Rejects with an `Error` if there is nothing. */
  collect(mostBytes: number): Promise<Collected>
}
