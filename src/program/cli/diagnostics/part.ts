/** What a part collected. */
export interface Collected {
  readonly body: Buffer | string
  /** There was more than could be taken. */
  readonly cut: boolean
}

/** One file of the bundle, or the reason why it is missing. */
export interface Part {
  /** Its path in the bundle. */
  readonly name: string
  /** What it is; one sentence without its full stop. */
  readonly what: string
  /** Where it is from: a URL's path, a file, a command. */
  readonly source: string
  readonly form: 'json' | 'lines' | 'text' | 'gzip'
  /** Bytes that it may have in the bundle. */
  readonly mostBytes: number
  /** Collects a little more than `mostBytes` where there is as much. Rejects with an `Error` that says why there is nothing. */
  collect(mostBytes: number): Promise<Collected>
}
