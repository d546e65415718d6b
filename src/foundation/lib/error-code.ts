/** An error, then its causes; at most eight, as a cause may be the error itself. */
export function* causesOf(error: unknown): Generator<unknown> {
  let at = error
  for (let depth = 0; at !== undefined && depth < 8; depth++) {
    yield at
    at = at instanceof Error ? at.cause : undefined
  }
}

/** The first system or OpenSSL code of an error and its causes, such as `EACCES`; '' if there is none. */
export function errorCode(error: unknown): string {
  for (const cause of causesOf(error)) {
    const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined
    if (typeof code === 'string') return code
  }
  return ''
}
