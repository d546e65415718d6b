// Browser access without a token: a link with a key, which is exchanged for a cookie.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Longest `Cookie` header to read; other programs on the same host name may fill it. */
const mostCookieBytes = 8 * 1024

/** Key and cookie of one run of the agent; both are valid until it ends. Neither is ever stored. */
export class BrowserKey {
  /** The value after `#key=` in a link; browsers do not send that part. */
  readonly key = randomBytes(24).toString('base64url')
  /** Not derived from the key, so neither reveals the other. */
  readonly #session = randomBytes(24).toString('base64url')
  readonly #keyDigest = digest(this.key)
  readonly #sessionDigest = digest(this.#session)

  isKey(given: string): boolean {
    return timingSafeEqual(digest(given), this.#keyDigest)
  }

  /** The header that sets the cookie. Scripts cannot read it, and other sites cannot make the browser send it. */
  setCookie(authority: string | undefined, tls: boolean): string {
    return `${cookieName(authority, tls)}=${this.#session}; Path=/; HttpOnly; SameSite=Strict${tls ? '; Secure' : ''}`
  }

  /** Whether a `Cookie` header contains it. */
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

/** One name per port as the browser sees it: cookies ignore ports, and a tunnel has its own port. */
function cookieName(authority: string | undefined, tls: boolean): string {
  const port = /:(\d{1,5})$/.exec(authority ?? '')?.[1]
  return `svc-session-${port ?? (tls ? '443' : '80')}`
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
