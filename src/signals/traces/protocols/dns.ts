import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { LookupDescription } from './dns/description.ts'
import { DnsStream, Unanswered } from './dns/stream.ts'

/**
 * Lookups of a DNS client (RFC 1035, over UDP and TCP), reported by the DNS conventions 1.44. A query that is sent
 * again is the same lookup.
 *
 * The span's name is `DNS` and the record type, as span names should have few values (the question is in
 * `dns.question.name`). svc's own attributes are `dns.question.type` and `dns.response_code`. In the metric,
 * `dns.question.name` is one of the first names that were found, and `_OTHER` for all others. `error.type` is the
 * response code's name (`NXDOMAIN`, `SERVFAIL`), `timeout` if no answer came (for UDP: within 15 seconds), or as in
 * failure.ts.
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
