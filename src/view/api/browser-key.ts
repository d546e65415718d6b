// How a person's browser is let in without a token: by a link with a key, which is exchanged for a cookie.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Of a `Cookie` header, which other programs on the same host name may fill. */
const mostCookieBytes = 8 * 1024

/** Key and cookie of one run of the agent; both are valid until it ends. Neither is ever written anywhere. */
export class BrowserKey {
  /** The value after `#key=` in a link; browsers do not send that part. */
  readonly key = randomBytes(24).toString('base64url')
  /** Not derived from the key: one does not reveal the other. */
  readonly #session = randomBytes(24).toString('base64url')
  readonly #keyDigest = digest(this.key)
  readonly #sessionDigest = digest(this.#session)

  isKey(given: string): boolean {
    return timingSafeEqual(digest(given), this.#keyDigest)
  }

  /** The header that hands the cookie out. A script never sees it, and no other site can have it sent. */
  setCookie(authority: string | undefined, tls: boolean): string {
    return `${cookieName(authority, tls)}=${this.#session}; Path=/; HttpOnly; SameSite=Strict${tls ? '; Secure' : ''}`
  }

  /** Whether a `Cookie` header has it. */
  isShown(cookies: string | undefined, authority: string | undefined, tls: boolean): boolean {
    if (cookies === undefined || cookies.length > mostCookieBytes) return false
    const begin = `${cookieName(authority, tls)}=`
    for (const each of cookies.split(';')) {
      const cookie = each.trimStart()
      if (!cookie.startsWith(begin)) continue
      if (timingSafeEqual(digest(cookie.slice(begin.length).trimEnd()), this.#sessionDigest)) return true
    }
    return false
  }
}

/** One per port as the browser knows it: cookies ignore ports, and a tunnel has its own port. */
function cookieName(authority: string | undefined, tls: boolean): string {
  const port = /:(\d{1,5})$/.exec(authority ?? '')?.[1]
  return `svc-session-${port ?? (tls ? '443' : '80')}`
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
