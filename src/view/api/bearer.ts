import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether an `Authorization` header has one of the tokens (RFC 6750 §2.1). */
export type BearerCheck = (authorization: string | undefined) => boolean

/**
 * Prepares the check. It compares digests of equal length, always all of them, so its duration reveals nothing about a
 * token. Empty tokens are ignored; an error if none is left.
 */
export function bearerCheck(tokens: readonly string[]): BearerCheck {
  const digests = tokens.filter(token => token !== '').map(digest)
  if (digests.length === 0) throw new Error('cannot require a bearer token: none is configured')
  return authorization => {
    const given = /^bearer +([^\s]+)\s*$/i.exec(authorization ?? '')?.[1]
    if (given === undefined) return false
    const of = digest(given)
    let equal = false
    for (const known of digests) if (timingSafeEqual(known, of)) equal = true
    return equal
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
