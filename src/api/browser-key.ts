// How a person's browser is let in without a token: by a link with a key, which is exchanged for a cookie.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Of a `Cookie` header, which other programs on the same host name may fill. */
const mostCookieBytes = 8 * 1024

/** Key and cookie of one run of the agent; both are valid until it ends. Neither is ever written anywhere. */
export class BrowserKey {
  /** What a link carries behind `#key=`; browsers send that part to nobody. */
  readonly key = randomBytes(24).toString('base64url')
  /** Not made of the key: who has seen one of them does not know the other. */
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

/** One for each port as the browser knows it, for cookies do not tell ports apart, and a tunnel has a port of its own. */
function cookieName(authority: string | undefined, tls: boolean): string {
  const port = /:(\d{1,5})$/.exec(authority ?? '')?.[1]
  return `svc-session-${port ?? (tls ? '443' : '80')}`
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
