import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { LookupDescription } from './dns/description.ts'
import { DnsStream, Unanswered } from './dns/stream.ts'

/**
 * Lookups of a DNS client (RFC 1035, over UDP and TCP), told in the DNS conventions 1.44. A query that is sent again is
 * the same lookup.
 *
 * The span's name is `DNS` and the record type that is asked for, as a span's name has few values (the question is
 * `dns.question.name`). Of our own are `dns.question.type` and `dns.response_code`. Of the metric, `dns.question.name` is
 * one of the first names that were found, and `_OTHER` for all others. `error.type` is the response code's name
 * (`NXDOMAIN`, `SERVFAIL`), `timeout` where no answer came (within 15 seconds, as far as a socket of UDP is concerned), or as in failure.ts.
 */
export const dns: ProtocolUnit = {
  name: 'dns',
  title: 'DNS',
  summary: 'DNS lookups.',
  key: 'dns',
  confidence: 'port',
  peerKind: 'resolver',
  create: () => new Dns(),
}

class Dns implements Protocol {
  readonly name = dns.name
  readonly #telling = new LookupDescription()
  readonly #unanswered = new Unanswered()

  open(connection: StreamConnection): StreamDecoder {
    return new DnsStream(this.#telling, connection, this.#unanswered)
  }
}
