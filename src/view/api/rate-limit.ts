import { isIPv6 } from 'node:net'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { counted } from '../../foundation/lib/small-tables.ts'

/** Clients that are remembered. A forgotten one starts again with a full bucket. */
const mostClients = 4096

interface Bucket {
  tokens: number
  /** When `tokens` was computed, in milliseconds of the clock. */
  at: number
}

/** A token bucket per client (an address or a user of this host), with one second's worth of requests. */
export class RateLimit {
  readonly requestsPerSecond: number
  readonly #clients = counted(new BoundedMap<string, Bucket>(mostClients))
  readonly #now: () => number

  /** `now`: milliseconds of a monotonic clock. */
  constructor(requestsPerSecond: number, now: () => number = () => performance.now()) {
    this.requestsPerSecond = requestsPerSecond
    this.#now = now
  }

  /**
   * Counts a request of a client as named by `clientOf`: 0 if it may be answered, else whole seconds (at least one)
   * until the next may be.
   */
  take(client: string): number {
    const now = this.#now()
    let bucket = this.#clients.get(client)
    if (bucket === undefined) {
      bucket = { tokens: this.requestsPerSecond, at: now }
      this.#clients.set(client, bucket)
    } else {
      const earned = ((now - bucket.at) / 1000) * this.requestsPerSecond
      bucket.tokens = Math.min(this.requestsPerSecond, bucket.tokens + earned)
      bucket.at = now
    }
    if (bucket.tokens >= 1) {
      bucket.tokens--
      return 0
    }
    return Math.max(1, Math.ceil((1 - bucket.tokens) / this.requestsPerSecond))
  }
}

/**
 * The client: a user of this host, because users share its addresses but must not share a limit; if `user` is -1, an
 * address: IPv4 as it is, also within IPv6, and the /64 of IPv6, the usual allocation of one client.
 */
export function clientOf(address: string, user = -1): string {
  if (user >= 0) return `user ${user}`
  if (!address.includes(':')) return address
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const [bare] = address.split('%', 1)
  if (!isIPv6(bare!)) return address
  const [front, back] = bare!.split('::')
  const groups = front === '' ? [] : front!.split(':')
  if (back !== undefined) {
    const behind = back === '' ? 0 : back.split(':').length
    while (groups.length + behind < 8) groups.push('0')
    groups.push(...back.split(':'))
  }
  return groups.slice(0, 4).join(':')
}
