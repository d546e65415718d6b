import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { MemcachedStream } from './memcached/stream.ts'

/**
 * Memcached: the text protocol with its meta commands (doc/protocol.txt of memcached 1.6) and the binary one, reported
 * by the conventions for database clients 1.44. A retrieval is one operation, however many keys it has. A quiet one
 * ends with the response to a later one, because only that shows that it got none; one with `noreply` ends when it is
 * sent.
 *
 * `error.type` and `db.response.status_code` are `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`; in the binary protocol the
 * status' name (`E2BIG`, `AUTH_ERROR`) and number; `error.type` may also be as in failure.ts. An item that is missing,
 * exists already or was changed is no error.
 */
export const memcached: ProtocolUnit = {
  name: 'memcached',
  title: 'memcached',
  summary: 'Commands to memcached.',
  key: 'memcached',
  confidence: 'command',
  counted: true,
  peerKind: 'store',
  create: () => new Memcached(),
}

class Memcached implements Protocol {
  readonly name = memcached.name
  /** Words of both sides. */
  readonly #words = small(new Interner({ slots: 256, maxLength: 32 }))

  fillCall({ connection, call }: Operation): boolean {
    const { peerAddress, peerPort } = connection
    describeDatabase(call, memcached.name, peerAddress, peerPort)
    return true
  }

  open(connection: StreamConnection): StreamDecoder {
    return new MemcachedStream(this.#words, connection)
  }
}
