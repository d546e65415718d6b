// The accepted names of this host. A web page whose own name was pointed at this host (DNS rebinding) uses that name,
// which is not one of them.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'

/** Of a file of names. */
const mostFileBytes = 256 * 1024

export class HostNames {
  readonly #names: ReadonlySet<string>

  constructor(...lists: readonly Iterable<string>[]) {
    this.#names = new Set(lists.flatMap(names => [...names].map(plainName)))
  }

  /** Whether the host of a `Host` header is accepted: an address, `localhost` and names below it, or a known name. */
  has(host: string): boolean {
    if (isIP(host) !== 0) return true
    const name = plainName(host)
    return isLocalName(name) || (name !== '' && this.#names.has(name))
  }
}

/** `localhost`, and names below it (RFC 6761, section 6.3). */
export function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** In small letters, and without the dot that ends a full name. */
function plainName(name: string): string {
  const small = name.toLowerCase()
  return small.endsWith('.') ? small.slice(0, -1) : small
}

/**
 * The names of this host: its host name, alone and in the domains that it searches, and the names of its addresses in
 * /etc/hosts. Name servers are not queried: the owner of a name could make it one of this host's.
 */
export function ownNames(host = hostname(), etc = '/etc'): string[] {
  const own = new Set(Object.values(networkInterfaces()).flatMap(all => all?.map(each => each.address) ?? []))
  const names = [host]
  for (const [word, ...rest] of wordsOf(`${etc}/resolv.conf`))
    if (word === 'search' || word === 'domain')
      names.push(...rest.map(domain => `${host}.${plainName(domain)}`))
  for (const [address = '', ...rest] of wordsOf(`${etc}/hosts`))
    if (own.has(address) || /^127\./.test(address) || address === '::1') names.push(...rest)
  return names
}

/** The words of each line, without comments. */
function wordsOf(file: string): string[][] {
  let text: string
  try {
    text = readFileSync(file, 'utf8').slice(0, mostFileBytes)
  } catch {
    return [] // there is none, and then no names are in it
  }
  return text.split('\n').map(line =>
    line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/),
  )
}
