// HTTP basic authentication (RFC 7617) with bcrypt hashes.

import { createHash } from 'node:crypto'

/** Hashes of passwords by user. */
export type Users = ReadonlyMap<string, string>

/** Cached results: a hash takes some 80 ms of CPU, and a scraper returns. */
const mostKnown = 100

/** The hash of random bytes, compared for unknown users so that the duration does not reveal them. */
const nobodys = '$2b$10$/.VjrfeTJ4U..chTyCyQm.JVXTd060ciNBWekBIPm63T2VXFxEmh.'

/** Whether a text is a bcrypt hash. */
export function isBcrypt(text: string): boolean {
  return /^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/.test(text)
}

/** Checks user and password in an Authorization header. Computes one hash at a time. */
export class BasicAuth {
  readonly #known = new Map<string, boolean>()
  #last: Promise<unknown> = Promise.resolve()

  async admits(authorization: string | undefined, users: Users): Promise<boolean> {
    const encoded = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization ?? '')?.[1]
    const [, user, password] =
      encoded === undefined ? [] : (/^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [])
    if (user === undefined || password === undefined) return false
    const hash = users.get(user)
    const key = createHash('sha256')
      .update(JSON.stringify([user, password, hash]))
      .digest('base64')
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const compared = this.#last.then(() => compare(password, hash ?? nobodys))
    this.#last = compared.catch(() => undefined)
    const admitted = (await compared) && hash !== undefined
    if (this.#known.size >= mostKnown) this.#known.delete(this.#known.keys().next().value!)
    this.#known.set(key, admitted)
    return admitted
  }
}

async function compare(password: string, hash: string): Promise<boolean> {
  const { default: bcrypt } = await import('bcryptjs')
  return bcrypt.compare(password, hash)
}
