// The accepted names of this host. A web page whose name was pointed at this host (DNS rebinding) uses its own name,
// which is not one of them.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'

/** Limit for a file of names. */
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

/** Lower case, without the trailing dot of a fully qualified name. */
function plainName(name: string): string {
  const small = name.toLowerCase()
  return small.endsWith('.') ? small.slice(0, -1) : small
}

/**
 * The names of this host: its host name, alone and in its search domains, and the names of its addresses in /etc/hosts.
 * Name servers are not queried: the owner of a name could make it one of this host's.
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
    return [] // no such file, no names
  }
  return text.split('\n').map(line =>
    line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/),
  )
}
